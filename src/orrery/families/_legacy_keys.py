"""Keys that configurations of earlier years carry whatever their family: how to search, and what nobody had set."""

from collections.abc import Mapping
from typing import Any

GENERATION = (
    "bad_words_ids", "begin_suppress_tokens", "diversity_penalty", "do_sample", "early_stopping",
    "encoder_no_repeat_ngram_size", "encoder_repetition_penalty", "epsilon_cutoff", "eta_cutoff",
    "exponential_decay_length_penalty", "force_bos_token_to_be_generated", "forced_bos_token_id",
    "forced_eos_token_id", "length_penalty", "max_length", "max_new_tokens", "min_length", "min_new_tokens", "min_p",
    "no_repeat_ngram_size", "num_beam_groups", "num_beams", "num_return_sequences", "remove_invalid_values",
    "repetition_penalty", "suppress_tokens", "temperature", "top_k", "top_p", "typical_p",
)  # fmt: skip
"""Keys that choose how a model writes, not what its numbers are; today they stand in generation_config.json."""

UNSET: Mapping[str, Any] = {
    "add_cross_attention": False, "cross_attention_hidden_size": None, "is_decoder": False, "output_scores": False,
    "pruned_heads": {}, "return_dict_in_generate": False, "tf_legacy_loss": False, "tie_encoder_decoder": False,
}  # fmt: skip
"""What old files write although nobody set it, with the value that says so."""
