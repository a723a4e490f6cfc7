"""What the files of encoder-decoders share: the token that a target begins with."""

from orrery.errors import ModelFileError
from orrery.families._config import Config
from orrery.models.encoder import Encoder
from orrery.nn.embeddings import TokenEmbedding
from orrery.nn.stack import Stack


def start_token(c: Config, *keys: str) -> int:
    """Return the first of these settings that is there, as generation in the reference looks for it.

    Raises:
        ModelFileError: none is.
    """
    for key in keys:
        if c[key] is not None and c[key] < 0:
            raise ModelFileError(f"{c.family}: {key} = {c[key]}, with which a target begins, is no token", "correct it")
        if c[key] is not None:
            return int(c[key])
    raise ModelFileError(
        f"{c.family}: config.json does not say which token a target begins with",
        f"give one of {', '.join(keys)}",
    )


STACKS = {"encoder": "reader.stack", "decoder": "decoder"}
"""Where our encoder-decoders have the stacks that files call by these names."""


def reader(width: int, context: int, embed: TokenEmbedding.Spec, stack: Stack.Spec) -> Encoder.Spec:
    """Return the encoder that reads for a decoder: it has no head."""
    return Encoder.Spec(width=width, context=context, embed=embed, stack=stack, heads={})
