"""What the files of encoder-decoders share: how generation is set, and the token that a target begins with."""

from orrery.errors import ModelFileError
from orrery.families._config import Config

GENERATION = (
    "forced_bos_token_id", "forced_eos_token_id", "force_bos_token_to_be_generated", "early_stopping", "length_penalty",
    "max_length", "min_length", "no_repeat_ngram_size", "encoder_no_repeat_ngram_size", "repetition_penalty",
    "num_beams", "num_return_sequences", "bad_words_ids", "do_sample", "temperature", "top_k", "top_p", "prefix",
    "output_past", "gradient_checkpointing",
)  # fmt: skip
"""Keys of old configurations that choose how to search or to train, not what the numbers are."""


def start_token(c: Config, *keys: str) -> int:
    """Return the first of these settings that is there, as generation in the reference looks for it.

    Raises:
        ModelFileError: none is.
    """
    for key in keys:
        if c[key] is not None:
            return int(c[key])
    raise ModelFileError(
        f"{c.family}: config.json does not say which token a target begins with",
        f"give one of {', '.join(keys)}",
    )
