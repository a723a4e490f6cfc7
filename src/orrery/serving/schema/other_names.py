"""Settings of writing that servers other than OpenAI's take: ours by another name, of no effect, or refused.

What vLLM, SGLang, llama.cpp, LM Studio, text-generation-inference, Mistral, Groq, Together and OpenRouter read beside
OpenAI's fields. Every route that writes holds to this one list.
"""

from collections.abc import Mapping
from typing import Any

RENAMED: Mapping[str, str] = {
    "repeat_penalty": "repetition_penalty",
    "repeat_last_n": "repetition_window",
    "random_seed": "seed",
    "min_new_tokens": "min_tokens",
    "max_new_tokens": "max_tokens",
    "n_predict": "max_tokens",
}
"""Settings of other servers that are ours."""
LOOKED_BACK = 64
"""Tokens that ``repeat_penalty`` counts where nothing is said, with llama.cpp and Ollama."""

_IDLE = "it is for {} alone, which is refused"
_ONE_WAY = "there is one way to do it, and no answer depends on it"
HARMLESS: Mapping[str, str] = {
    **dict.fromkeys(("cache_prompt", "n_cache_reuse"), "whatever begins as an earlier prompt did goes on from it"),
    **dict.fromkeys(("id_slot", "priority"), "requests are answered in the order in which they come"),
    **dict.fromkeys(("request_id", "rid"), "each answer has an id of its own"),
    **dict.fromkeys(("mirostat_tau", "mirostat_eta"), _IDLE.format("mirostat")),
    **dict.fromkeys(
        ("dry_base", "dry_allowed_length", "dry_penalty_last_n", "dry_sequence_breakers"),
        _IDLE.format("dry_multiplier"),
    ),
    **dict.fromkeys(("grammar_lazy", "grammar_triggers"), _IDLE.format("grammar")),
    **dict.fromkeys(("guided_decoding_backend", "spaces_between_special_tokens"), _ONE_WAY),
    **dict.fromkeys(("n_keep", "n_discard"), "nothing is shifted out of the context: an answer ends where it does"),
    "xtc_threshold": _IDLE.format("xtc_probability"),
    "dynatemp_exponent": _IDLE.format("dynatemp_range"),
    "draft_model": "a draft changes no answer",
    "ttl": "the one model stays in memory for as long as the server runs",
    "citation_options": "nothing is cited",
    "disable_tool_validation": "a call of another function is told as text",
}
"""Fields that change no answer here, each with the reason."""

_BEAMS = "orrery generate MODEL PROMPT --num-beams 4 searches"
_CUTS = "draw with top_p, min_p or typical_p"
_BUDGET = "send reasoning_effort, or in /v1/responses reasoning.effort"
_SWITCH = 'send "chat_template_kwargs": {"enable_thinking": ...}, or reasoning_effort'
_OFFLINE = "the server opens no connections"
_SHORTEN = "send what fits; nothing is cut in silence"
_SCORES = "logprobs tells them: a number in /v1/completions, true with top_logprobs in a chat"
_ADAPTER = "name the adapter as model; orrery serve MODEL --adapter NAME=FOLDER loads one"
_TELLS = "read what the answer tells in usage"
_APART = "reasoning is told apart by /v1/responses, /v1/messages and /api/chat"
_ROUTER = "this server has one model and sends nothing on"
UNSUPPORTED: Mapping[str, tuple[tuple[Any, ...], str]] = {
    **dict.fromkeys(("use_beam_search", "early_stopping"), ((False,), _BEAMS)),
    "length_penalty": ((1,), _BEAMS),
    "mirostat": ((0,), "draw with temperature, top_p or min_p"),
    **dict.fromkeys(("xtc_probability", "dynatemp_range", "min_keep"), ((0,), _CUTS)),
    "top_n_sigma": ((-1, 0), _CUTS),
    "top_a": ((0,), _CUTS),
    "tfs_z": ((1,), "draw with top_p or typical_p"),
    "samplers": (([],), "the settings are applied in one order, that of the documentation"),
    "dry_multiplier": ((0,), "repetition_penalty and frequency_penalty count tokens"),
    "penalize_nl": ((False,), "repeat_penalty counts every token alike"),
    "no_repeat_ngram_size": ((0,), "repetition_penalty and frequency_penalty count tokens"),
    "allowed_token_ids": (([],), "a regex of response_format holds the answer to a form"),
    "logits_processors": (([],), "logit_bias, bad_words and response_format change what may be drawn"),
    "custom_logit_processor": (("",), "logit_bias, bad_words and response_format change what may be drawn"),
    "watermark": ((False,), "no answer is marked"),
    "include_stop_str_in_output": ((False,), "the string that ended the answer is the one that was sent as stop"),
    "no_stop_trim": ((False,), "the string that ended the answer is the one that was sent as stop"),
    "stop_regex": (([], ""), "send strings as stop, or the whole answer's form as response_format"),
    "skip_special_tokens": ((True,), "logprobs with return_token_ids tells every token"),
    "return_tokens_as_token_ids": ((False,), "logprobs with return_token_ids tells the id of each token"),
    "prompt_logprobs": ((), "echo with logprobs of /v1/completions tells those of a prompt"),
    "n_probs": ((0,), _SCORES),
    "return_tokens": ((False,), "logprobs with return_token_ids tells the id of each token"),
    "response_fields": (([],), "all fields are told"),
    "post_sampling_probs": ((False,), _SCORES),
    "return_hidden_states": ((False,), "POST /inspect/traces looks inside"),
    "timings_per_token": ((False,), _TELLS),
    "return_progress": ((False,), _TELLS),
    "truncate_prompt_tokens": ((-1,), _SHORTEN),
    "context_length_exceeded_behavior": (("error",), _SHORTEN),
    "n_indent": ((0,), "a regex of response_format holds the answer to a form"),
    "guided_whitespace_pattern": ((), "a regex of response_format says where blanks stand"),
    "t_max_predict_ms": ((0, -1), "max_tokens bounds an answer"),
    "cache_salt": ((), "orrery serve MODEL --kept-tokens 0 keeps nothing that another client could notice"),
    "kv_transfer_params": (({},), "one process reads and writes"),
    "session_params": (({},), "whatever begins as an earlier prompt did goes on from it"),
    "vllm_xargs": (({},), "its settings are unknown here; the documentation lists what is read"),
    "custom_params": (({},), "its settings are unknown here; the documentation lists what is read"),
    **dict.fromkeys(("lora", "lora_path", "adapter_id"), (([], ""), _ADAPTER)),
    "chat_template": ((), "the model's own is used; orrery serve MODEL --template takes another"),
    "tool_prompt": ((), "tools stand where the model's template has them"),
    "documents": (([],), "put them into a message"),
    "mm_processor_kwargs": (({},), "pictures are read as the model's folder says"),
    "media_io_kwargs": (({},), "pictures are read as the model's folder says"),
    "structural_tag": ((), "send a JSON schema or a regular expression as response_format"),
    "reasoning_format": (("none", "raw", "auto"), _APART),
    "include_reasoning": ((True,), _APART),
    "separate_reasoning": ((True,), _APART),
    "stream_reasoning": ((True,), _APART),
    "thinking_forced_open": ((False,), _SWITCH),
    **dict.fromkeys(("enable_thinking", "thinking", "prompt_mode"), ((), _SWITCH)),
    **dict.fromkeys(("thinking_budget", "thinking_token_budget", "thinking_budget_tokens"), ((-1,), _BUDGET)),
    "reasoning_budget": ((-1,), _BUDGET),
    "parse_tool_calls": ((True,), '"tool_choice": "none" leaves an answer as text'),
    "safe_prompt": ((False,), "say it in the system's message"),
    "safety_model": ((), "nothing is moderated"),
    **dict.fromkeys(("search_settings", "include_domains", "exclude_domains", "plugins"), (([], {}), _OFFLINE)),
    "compound_custom": (({},), _OFFLINE),
    **dict.fromkeys(("models", "provider", "transforms", "route"), (([], {}, ""), _ROUTER)),
}  # fmt: skip
"""Fields that are refused: the values with which each asks for nothing, and what to do instead."""


def looked_back(window: int | None, penalised: bool) -> dict[str, Any]:
    """Return how far a penalty of repetitions looks back: not at all (0), some tokens, or everything (-1)."""
    window = LOOKED_BACK if window is None and penalised else window
    if window in (None, -1):
        return {}
    return {"repetition_penalty": 1} if window == 0 else {"repetition_window": window}


def sent_as(own: str, given: Any) -> str:
    """Return the name under which a request has one of our settings."""
    if not isinstance(given, Mapping) or given.get(own) is not None:
        return own
    return next((name for name, ours in RENAMED.items() if ours == own and given.get(name) is not None), own)
