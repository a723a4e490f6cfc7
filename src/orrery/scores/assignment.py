"""The cheapest assignment of rows to columns: which guess answers for which thing (Kuhn 1955)."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from orrery.errors import UsageError


def cheapest(costs: Sequence[Sequence[float]] | NDArray[np.floating]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return rows and columns, each at most once and as many as there can be, whose costs sum to the least.

    Shortest augmenting paths with dual prices (Jonker and Volgenant 1987, in the form of Crouse 2016), O(n^2 m) for n
    of the shorter side; rows come in their order, as scipy's ``linear_sum_assignment`` has them. Among assignments
    that cost the same it may choose another than scipy.

    Raises:
        UsageError: the costs are no table of finite numbers.
    """
    table = np.asarray(costs, np.float64)
    if table.ndim != 2 or not np.isfinite(table).all():
        raise UsageError(f"costs of shape {list(table.shape)}", "give a table of finite numbers, a row for each guess")
    if table.shape[0] > table.shape[1]:
        columns, rows = cheapest(table.T)
        order = np.argsort(rows)
        return rows[order], columns[order]
    of_column = _matched(table)
    rows = of_column[of_column >= 0]
    order = np.argsort(rows)
    return rows[order], np.flatnonzero(of_column >= 0)[order]


def _matched(table: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the row that each column is given to, or -1; there are no more rows than columns."""
    rows, columns = table.shape
    of_row, of_column = np.zeros(rows), np.zeros(columns)
    owner, before = np.full(columns, -1), np.full(columns, -1)
    for first in range(rows):
        shortest, reached = np.full(columns, np.inf), np.zeros(columns, bool)
        row, length, end = first, 0.0, -1
        visited = []
        while end < 0:
            visited.append(row)
            through = length + table[row] - of_row[row] - of_column
            better = ~reached & (through < shortest)
            shortest[better], before[better] = through[better], row
            nearest = int(np.where(reached, np.inf, shortest).argmin())
            length = shortest[nearest]
            reached[nearest] = True
            row = int(owner[nearest])
            end = nearest if row < 0 else -1
        of_row[first] += length
        for other in visited[1:]:
            of_row[other] += length - shortest[owner == other][0]
        of_column[reached] -= length - shortest[reached]
        _turn(owner, before, end, first)
    return owner


def _turn(owner: NDArray[np.int64], before: NDArray[np.int64], column: int, first: int) -> None:
    """Give the columns of a path to the rows before them, from its end to the row that it began with."""
    while True:
        row = int(before[column])
        owner[column], column = row, int(np.flatnonzero(owner == row)[0]) if row != first else -1
        if row == first:
            return
