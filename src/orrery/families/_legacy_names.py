"""What published files of several decoders hold that models of today do not name so: for `LEGACY_NAMES` of families.

A buffer that follows from the configuration was once written beside the weights; transformers stopped that in 2023,
but the files stayed. No forward pass reads it.
"""

from collections.abc import Mapping

CAUSAL: Mapping[str, str | None] = {r"\.(attn|attention)\.(masked_)?bias$": None}
"""Drops the causal mask of every attention, and the number that stood for minus infinity."""

ROTARY: Mapping[str, str | None] = {r"\.rotary_emb\.(inv_freq|cos_cached|sin_cached)$": None}
"""Drops the frequencies of rotary positions in every attention, and their tables, which ColossalAI added."""


def headless(prefix: str, *parts: str) -> dict[str, str | None]:
    """Return the names of a model published without its head: those of its parts lack the prefix."""
    return {rf"^({'|'.join(parts)})\.": rf"{prefix}\1."}
