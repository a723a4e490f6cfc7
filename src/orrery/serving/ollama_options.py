"""The options of Ollama: each is a setting of drawing by another name, changes nothing, or is refused."""

from collections.abc import Mapping
from typing import Any

from orrery.exchange.reading.ollama import USUAL
from orrery.exchange.stored import wishes
from orrery.schema.writing import DRAWING
from orrery.serving.errors import ApiError
from orrery.serving.schema import other_names
from orrery.serving.served import Served

_OURS = ("logit_bias", "repetition_penalty", "repetition_window")
"""Settings that Ollama has not, or calls by another name."""
DRAWN: Mapping[str, str] = {
    **{name: name for name in DRAWING if name not in _OURS},
    "repeat_penalty": "repetition_penalty",
    "seed": "seed",
    "stop": "stop",
}
"""Options that are settings of a chat, with their names there."""
COUNTS = ("num_ctx", "num_predict", "repeat_last_n")
"""Options that count tokens."""
_LOADED = "how the model is loaded and run is said when the server starts; it changes no answer"
HARMLESS: Mapping[str, str] = {
    **dict.fromkeys(
        (
            "num_batch", "num_gpu", "main_gpu", "num_thread", "numa", "low_vram", "f16_kv", "use_mmap", "use_mlock",
            "logits_all", "vocab_only", "embedding_only", "draft_num_predict",
        ),
        _LOADED,
    ),
    "num_keep": other_names.HARMLESS["n_keep"],
    **{name: other_names.HARMLESS[name] for name in ("mirostat_tau", "mirostat_eta")},
}  # fmt: skip
"""Options that change no answer, each with the reason."""
UNSUPPORTED: Mapping[str, tuple[tuple[Any, ...], str]] = {
    **{name: other_names.UNSUPPORTED[name] for name in ("mirostat", "tfs_z")},
    "penalize_newline": ((True,), "repeat_penalty counts every token alike"),
}
"""Options that are refused, with the values that ask for nothing and what to do instead."""
FIELDS: Mapping[str, str] = {
    **{theirs: f"options.{own}" for own, theirs in DRAWN.items()},
    "repetition_window": "options.repeat_last_n",
    "max_tokens": "options.num_predict",
    "response_format": "format",
    "reasoning_effort": "think",
}
"""From the fields of a chat to those of this interface, for errors."""


def drawing(served: Served, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a chat that options ask for; what is left out is as the model's files say, else ``USUAL``.

    Raises:
        ApiError: an option that is not followed, or none that can be.
    """
    for name, (neutral, instead) in UNSUPPORTED.items():
        if options.get(name) is not None and options[name] not in neutral:
            where = f"options.{name}"
            raise ApiError(400, f"{where} is not supported: {instead}", param=where, code="unsupported_parameter")
    files = wishes(served.stored).sampling
    usual = files if files["temperature"] else USUAL
    given = {theirs: options[own] for own, theirs in DRAWN.items() if options.get(own) is not None}
    fields = {name: value for name, value in {**usual, **given}.items() if value is not None}
    if fields.get("seed") == -1:  # whatever comes
        del fields["seed"]
    return fields | other_names.looked_back(count(options, "repeat_last_n", -1), "repetition_penalty" in given)


def count(options: Mapping[str, Any], name: str, least: int) -> int | None:
    """Return an option that counts tokens; nothing where it is left out.

    Raises:
        ApiError: it is no whole number from ``least`` on.
    """
    value = options.get(name)
    if value is None:
        return None
    if type(value) is not int or not least <= value < 2**31:
        raise ApiError(400, f"options.{name}: a whole number from {least} on", param=f"options.{name}")
    return value
