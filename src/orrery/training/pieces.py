"""Rows in pieces of at most some size: the micro-batches of a step."""

from collections.abc import Iterator


def pieces(rows: range, size: int | None) -> Iterator[range]:
    """Split rows into micro-batches of at most ``size``."""
    step = size or max(1, len(rows))
    for start in range(rows.start, rows.stop, step):
        yield range(start, min(start + step, rows.stop))
