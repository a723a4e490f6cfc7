"""What tells rows with one text apart: their labels, and the texts that theirs belongs to."""

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from orrery.data.rows.labelled import LABELS, PAIRS
from orrery.data.rows.pair_columns import KNOWN

ALONE = (*LABELS, "answers", "choices", "chosen", "rejected", "completion", "messages", "conversations", "ner_tags")
"""Names of columns that count wherever they stand: rows that differ in one of them say different things."""


def counted_columns(row: Mapping[str, Any], text: str, others: Sequence[str] = ()) -> list[str]:
    """Return the columns in which rows must be equal too to be duplicates.

    These are labels, and the other side of a pair whose names are known; what says where a row comes from is not.

    Args:
        row: one of them.
        text: the column of the text.
        others: columns that count besides.
    """
    pairs = {name for pair in (*PAIRS, *KNOWN) if set(pair) <= set(row) for name in pair}
    return [name for name in row if name != text and (name in ALONE or name in pairs or name in others)]


def meaning(row: Mapping[str, Any], columns: Sequence[str]) -> str:
    """Return a digest of what stands in some columns, the same for equal values; nothing without columns."""
    if not columns:
        return ""
    content = json.dumps([plain(row.get(name)) for name in columns], sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()[:32]


def plain(value: Any) -> Any:
    """Return a value as JSON has it; numbers that are none become null, moments and bytes texts."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, str | int | float | None) else str(value)
