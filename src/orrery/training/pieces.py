"""Rows in pieces of at most some size: the micro-batches of a step."""

from collections.abc import Iterator

Passes = Iterator[tuple[range, bool]]
"""The rows of each pass through a model, and whether they add to the loss."""


def pieces(rows: range, size: int | None) -> Iterator[range]:
    """Split rows into micro-batches of at most ``size``."""
    step = size or max(1, len(rows))
    for start in range(rows.start, rows.stop, step):
        yield range(start, min(start + step, rows.stop))


def passes(rows: range, size: int | None) -> Passes:
    """Yield the passes of a process that goes through its own rows alone."""
    return ((piece, True) for piece in pieces(rows, size))
