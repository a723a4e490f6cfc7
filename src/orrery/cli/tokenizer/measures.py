"""What is measured of a tokenizer, as a row of a table."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from orrery.text.comparison import Measures

MEASURES = ("tokenizer", "ids", "tokens", "bytes a token", "tokens a word", "unknown", "share")


def measures_row(name: str, measures: "Measures") -> tuple[str, ...]:
    """Return the cells of one tokenizer under `MEASURES`."""
    return (
        name,
        f"{measures.vocabulary:,}",
        f"{measures.tokens:,}",
        f"{measures.compression:.2f}",
        f"{measures.fertility:.2f}",
        f"{measures.unknown:,}",
        f"{measures.unknown_rate:.2%}",
    )
