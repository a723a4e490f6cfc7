"""Every key of a generation_config.json: followed, without effect on what is written, or refused."""

from collections.abc import Mapping
from typing import Any

from orrery.schema.writing import at, is_searched

CONTROL = ("bos_token_id", "eos_token_id", "pad_token_id", "decoder_start_token_id")
"""The keys that name tokens by what they are for."""

FOLLOWED = frozenset({*CONTROL, *(name for name, one in at("file").items() if one.about.foreign)})
"""Keys of the reference; those that only we know are the others of ``orrery.schema.writing`` that files may have."""

_SPEED = "how the same tokens are computed"
_TOLD = "what is told beside the tokens"
_GUESSED = "guesses of another model or of the prompt, which leave greedy answers and the distribution as they are"
WITHOUT_EFFECT: Mapping[str, str] = {
    "_from_model_config": "where the file came from",
    "transformers_version": "where the file came from",
    "use_cache": _SPEED,
    "cache_implementation": _SPEED,
    "cache_config": _SPEED,
    "max_cache_len": _SPEED,
    "compile_config": _SPEED,
    "disable_compile": _SPEED,
    "continuous_batching_config": _SPEED,
    "low_memory": _SPEED,
    "prefill_chunk_size": _SPEED,
    "output_attentions": _TOLD,
    "output_hidden_states": _TOLD,
    "output_scores": _TOLD,
    "output_logits": _TOLD,
    "return_dict_in_generate": _TOLD,
    "use_mtp": _GUESSED,
    "speculation_type": _GUESSED,
    "is_assistant": _GUESSED,
    "num_assistant_tokens": _GUESSED,
    "num_assistant_tokens_schedule": _GUESSED,
    "assistant_confidence_threshold": _GUESSED,
    "assistant_early_exit": _GUESSED,
    "assistant_lookbehind": _GUESSED,
    "target_lookbehind": _GUESSED,
    "prompt_lookup_num_tokens": _GUESSED,
    "max_matching_ngram_size": _GUESSED,
    "remove_invalid_values": "numbers that are none end a run with the name of the weight they come from",
    "diversity_penalty": "between groups of beams, which are refused",
}
"""Why a key changes nothing."""

_DRAWN = {"epsilon_cutoff": (0, 0.0), "eta_cutoff": (0, 0.0), "top_h": ()}
"""Keys that count where tokens are drawn, with the values that ask for nothing."""

_SEARCHED = {"renormalize_logits": (False,)}
"""The same of those that count where answers are searched for: what is drawn is normalised in any case."""

_ALWAYS: Mapping[str, tuple[Any, ...]] = {
    "assistant_ensemble_weight": (0, 0.0),
    "constraints": ([],),
    "dola_layers": (),
    "encoder_no_repeat_ngram_size": (0,),
    "encoder_repetition_penalty": (1, 1.0),
    "exponential_decay_length_penalty": (),
    "force_words_ids": ([],),
    "guidance_scale": (1, 1.0),
    "max_time": (),
    "num_beam_groups": (1,),
    "penalty_alpha": (0, 0.0),
    "sequence_bias": ({}, []),
    "token_healing": (False,),
    "watermarking_config": (),
}
"""Keys that change what is written and are not built, with the values that ask for nothing."""

REFUSED = frozenset({*_ALWAYS, *_DRAWN, *_SEARCHED})


def not_followed(settings: Mapping[str, Any]) -> list[str]:
    """Return the keys that ask for something that is not built; null asks for nothing.

    A key that neither the reference nor we know is never read.
    """
    known: dict[str, tuple[Any, ...]] = dict(_ALWAYS)
    if settings.get("do_sample"):
        known |= _DRAWN
    if is_searched(settings):
        known |= _SEARCHED
    return [key for key, idle in known.items() if settings.get(key) is not None and settings[key] not in idle]
