"""GGUF files that hold no model, or one that is not built: what they are, and which file to name in their place.

llama.cpp's programs write and read the same format for other things than models: adapters, what reads images before a
model, the importance of weights, directions in the stream, vocabularies alone.
"""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from orrery.errors import ModelFileError
from orrery.exchange.reading.gguf_parts import HINT

_MODEL = "name the file of the model"
_KINDS = {
    "adapter": (
        "an adapter (LoRA) for a model, and no model",
        "name the model; of adapters the folders that peft writes are read",
    ),
    "mmproj": (
        "the part of a model that reads images or sounds (mmproj)",
        "name the file of the language model, which lies beside it",
    ),
    "imatrix": ("an importance matrix, by which files are quantised, and no model", _MODEL),
    "controlvector": ("a control vector, which is added to a model's stream, and no model", _MODEL),
    "vocabulary": ("a vocabulary without a single weight", _MODEL),
}
"""What a file is, and what to do, by llama.cpp's word for its kind or ours."""
_NOT_BUILT = {
    "phimoe": "a Phi-3.5-MoE: its files leave out by what the makers' model multiplies queries and keys, and llama.cpp "
    "computes another one of them, with other norms and other weights of the experts",
    "t5encoder": "the encoder of a T5 alone, and T5 is built with both its halves",
}
"""What a file is by its architecture, and why it is not read; these models' folders are."""


def refuse_others(facts: Mapping[str, Any], tensors: Collection[str], path: Path) -> None:
    """Refuse a file that is no model, or one whose numbers cannot be the makers'.

    Raises:
        ModelFileError: it is; it says what the file is and what to name in its place.
    """
    name = str(facts.get("general.architecture"))
    if kind := _kind(facts, name, tensors):
        what, hint = _KINDS[kind]
        raise ModelFileError(f"{path} is {what}", hint)
    if reason := _NOT_BUILT.get(name):
        hint = "name a file of the whole model, or its Hugging Face folder" if name == "t5encoder" else HINT
        raise ModelFileError(f"{path} is {reason}", hint)


def _kind(facts: Mapping[str, Any], name: str, tensors: Collection[str]) -> str | None:
    """Return what kind of file this is that holds no model; none where it may be one."""
    said = facts.get("general.type")
    if said in ("adapter", "mmproj", "imatrix"):
        return str(said)
    told = {"adapter.type": "adapter", "imatrix.chunk_count": "imatrix", "imatrix.datasets": "imatrix"}
    if found := next((kind for key, kind in told.items() if key in facts), None):
        return found
    if name in ("clip", "controlvector"):
        return {"clip": "mmproj"}.get(name, name)
    return None if tensors else "vocabulary"
