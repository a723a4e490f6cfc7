"""Models that read pictures beside texts, of whose folders the part that reads and writes text is read alone.

Without a picture no number comes from the other parts: each position is its place in the text, whichever of several
rotary axes counts it, and the tokens see what a decoder's do. Families whose text part reads otherwise (PaliGemma's
prompt, Llama 3.2's layers between) are not among them.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

from orrery.errors import ModelFileError

_QWEN2_VL = {
    "vocab_size": 152064, "hidden_size": 8192, "intermediate_size": 29568, "num_hidden_layers": 80,
    "num_attention_heads": 64, "num_key_value_heads": 8, "max_window_layers": 80, "rms_norm_eps": 1e-5,
    "rope_theta": 1_000_000.0, "sliding_window": None,
}  # fmt: skip
_QWEN3_VL = {"max_position_embeddings": 128_000, "rope_theta": 500_000.0}
_FAMILIES: Mapping[str, str] = {
    "gemma3": "gemma3_text", "mistral3": "mistral", "qwen3_vl": "qwen3_vl_text",
    **dict.fromkeys(("llava", "llava_next", "llava_next_video", "vipllava", "idefics3", "smolvlm"), "llama"),
    **dict.fromkeys(("llava_onevision", "internvl"), "qwen2"),
    **{name: f"{name}_text" for name in ("qwen2_vl", "qwen2_5_vl")},
}  # fmt: skip
"""The ``model_type`` of the whole, and that of a text part that names none."""
_UNDER: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    **{name: ("qwen2", _QWEN2_VL) for name in ("qwen2_vl_text", "qwen2_5_vl_text")},
    "qwen3_vl_text": ("qwen3", _QWEN3_VL),
}
"""Text parts with a name of their own: the family that they are of, and where what an absent key means differs."""
_CARRIED = ("bos_token_id", "eos_token_id", "pad_token_id", "quantization_config", "dtype", "torch_dtype")
"""Keys of the whole that count for its text part too, where that says nothing."""
_OF_PICTURES = re.compile(r"vision_config|(image|video|vision|vision_start|vision_end)_token_id")
_AXES = ("mrope_section", "mrope_interleaved")
"""Which rotary axis turns which channels; in a text all axes count alike."""
_TEXT = re.compile(r"^(?:model\.)?(?:language_model|text_model)\.(?:model\.)?")
_OTHERS = re.compile(
    r"^(?:model\.)?(?:visual|vision_tower|vision_model|multi_modal_projector|connector|image_newline)(?:\.|$)"
)


def whole_of(config: Mapping[str, Any]) -> str | None:
    """Return the ``model_type`` of a model that reads pictures too, of which the text part can be read; else None."""
    family = config.get("model_type")
    return family if isinstance(family, str) and family in _FAMILIES else None


def text_config(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the configuration of a model's text part; older files of Qwen2-VL have its keys among those of the whole.

    Raises:
        ModelFileError: the text part is no object.
    """
    part = config.get("text_config")
    if part is None and "hidden_size" in config:
        part = {key: value for key, value in config.items() if not _OF_PICTURES.fullmatch(key)} | {"model_type": None}
    if not isinstance(part, Mapping):
        raise ModelFileError("text_config is no object", "get the file again from its source")
    usual = _FAMILIES[config["model_type"]]
    family, absent = _UNDER.get(named := part.get("model_type") or usual, (named, {}))
    carried = {key: config[key] for key in _CARRIED if config.get(key) is not None}
    ties = {key: config[key] for key in ("tie_word_embeddings",) if isinstance(config.get(key), bool)}
    kept = {key: value for key, value in part.items() if key != "architectures"}
    rotary = {key: _one_axis(kept[key]) for key in ("rope_scaling", "rope_parameters") if key in kept}
    absent = {key: value for key, value in absent.items() if key != "rope_theta" or "rope_parameters" not in kept}
    return {**absent, **carried, **kept, **rotary, **ties, "model_type": family}


def name_in_text(name: str) -> str | None:
    """Return what a tensor of the whole is called in the text part; None for one of the other parts."""
    if _OTHERS.match(name):
        return None
    inner = _TEXT.sub("", name)
    return name if inner == name else inner if inner.startswith("lm_head.") else f"model.{inner}"


def naming(config: Mapping[str, Any]) -> Callable[[str], str | None]:
    """Return the function from the names of a folder's tensors to those of the model that is read of it."""
    return name_in_text if whole_of(config) else str


def _one_axis(given: Any) -> Any:
    """Return rotary settings without what tells several axes apart."""
    if not isinstance(given, Mapping):
        return given
    kept = {key: value for key, value in given.items() if key not in _AXES}
    return {
        key: "default" if key in ("type", "rope_type") and value == "mrope" else value for key, value in kept.items()
    }
