"""Which end of a text stays where it is too long, as the files of a tokenizer say."""

from collections.abc import Mapping
from typing import Any, Literal

from orrery.errors import ModelFileError

Side = Literal["left", "right"]
"""The end at which a text loses tokens."""


def side_said(config: Mapping[str, Any]) -> Side | None:
    """Return what a tokenizer_config.json says (``truncation_side``); None where it says nothing.

    Raises:
        ModelFileError: it is no side.
    """
    found = config.get("truncation_side", ...)
    if found is ...:
        return None
    if found not in ("left", "right"):
        message = f"tokenizer_config.json beside it: truncation_side = {str(found)[:40]!r} is no side"
        raise ModelFileError(message, "write left or right, or take the key out")
    return "left" if found == "left" else "right"


def side_of(definition: Mapping[str, Any]) -> Side:
    """Return the side of a tokenizer.json, whose ``truncation`` may have one; the right end is usual."""
    truncation = definition.get("truncation") or {}
    return "left" if str(truncation.get("direction", "")).lower() == "left" else "right"
