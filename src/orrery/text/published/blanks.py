"""Where Llama's tokenizer puts a blank before a text: at all, and behind a control token too, or at the beginning only.

The SentencePiece model knows one answer, and the tokenizer_config.json beside it may have another.
"""

from collections.abc import Mapping
from typing import Any

from orrery.text.frames import class_of
from orrery.text.sentencepiece.file import SPACE
from orrery.text.sentencepiece.protobuf import written

_CLASSES = ("Llama", "CodeLlama")
"""The classes that have these settings."""
_NORMALISATION, _PREFIXED = 3, 3
"""The fields of a SentencePiece model: its normalisation, and in that whether a blank goes before a text."""


def without_blank(content: bytes, config: Mapping[str, Any]) -> bytes:
    """Return a SentencePiece model that puts no blank before a text, where ``add_prefix_space`` is false."""
    if class_of(config) not in _CLASSES or config.get("add_prefix_space") is not False:
        return content
    # A message that stands again goes on with the first one.
    return content + written(_NORMALISATION, written(_PREFIXED, 0))


def at_the_beginning(made: dict[str, Any], config: Mapping[str, Any]) -> dict[str, Any]:
    """Return a tokenizer.json whose blank stands before the first text only, where ``legacy`` is false.

    Args:
        made: the tokenizer.json of the model itself.
        config: what tokenizer_config.json says. Without ``legacy``, a blank stands behind each control token too, as
            it did before there was such a setting.
    """
    steps = made["normalizer"]["normalizers"]
    others = [step for step in steps if step["type"] != "Prepend"]
    if class_of(config) not in _CLASSES or config.get("legacy") is not False or others == steps:
        return made
    first = {"type": "Metaspace", "replacement": SPACE, "prepend_scheme": "first", "split": False}
    cuts = made["pre_tokenizer"]["pretokenizers"] if made["pre_tokenizer"] else []
    return {
        **made,
        "normalizer": {**made["normalizer"], "normalizers": others},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [first, *cuts]},
    }
