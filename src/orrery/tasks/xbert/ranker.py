"""The ranker: labels of the likeliest clusters, each with a linear classifier of its own (X-BERT, section 3.3)."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray

from orrery.data.many_labels.features import SparseRows
from orrery.tasks.xbert.linear import Block, hinged, squared_hinge

Ranking = list[tuple[int, float]]
"""Numbers with the logarithm of their score, the best first."""
Done = Callable[[int, int], None]


@dataclass(frozen=True)
class Ranker:
    """A block of classifiers for each group of numbers: of labels in a cluster, or of clusters in a larger one.

    Attributes:
        members: the numbers in each group.
        blocks: their classifiers.
    """

    members: Sequence[NDArray[np.int64]]
    blocks: Sequence[Block]

    def within(self, rows: SparseRows, number: int, groups: Ranking, most: int) -> Ranking:
        """Return the best numbers of some groups for a row: ``log p(group) - max(0, 1 - s)^3``, equal ones in order."""
        columns, values = rows.row(number)
        found, scores = [], []
        for group, score in groups:
            found.append(self.members[group])
            scores.append(score + hinged(self.blocks[group].scores(columns, values)))
        every, each = np.concatenate(found), np.concatenate(scores)
        best = np.lexsort((every, -each))[:most]
        return [(int(every[place]), float(each[place])) for place in best]

    def read(self, groups: Sequence[int]) -> int:
        """Return how many numbers are read for these groups."""
        return sum(len(self.members[group]) for group in groups)


def fitted(
    rows: SparseRows,
    labels: Sequence[Sequence[int]],
    members: Sequence[NDArray[np.int64]],
    taken: Sequence[Sequence[int]],
    cost: float = 1.0,
    done: Done = lambda count, total: None,
) -> Ranker:
    """Return the classifiers of each group, from the rows that belong to it.

    These are the rows with one of its labels (teacher-forced negatives: those of another label of the group), and those
    for which the matcher takes it, right or wrong (matcher-aware negatives).

    Args:
        rows: the texts, with a column of ones.
        labels: the labels of each row.
        members: the labels of each group.
        taken: the groups that the matcher takes for each row; none for teacher forcing alone.
        cost: what a fault costs beside the length of the weights.
        done: told how many groups are done.
    """
    home = {int(label): (group, place) for group, own in enumerate(members) for place, label in enumerate(own)}
    held: list[dict[int, list[int]]] = [{} for _ in members]
    for number, own in enumerate(labels):
        for label in own:
            group, place = home[label]
            held[group].setdefault(number, []).append(place)
    for number, groups in enumerate(taken):
        for group in groups:
            held[group].setdefault(number, [])
    blocks = []
    for group, by_row in enumerate(held):
        blocks.append(_block(rows, by_row, len(members[group]), cost))
        done(group + 1, len(members))
    return Ranker(members, blocks)


def _block(rows: SparseRows, by_row: dict[int, list[int]], count: int, cost: float) -> Block:
    """Return the classifiers of one group; where no row belongs to it, all weigh nothing."""
    if not by_row:
        return Block(np.zeros(0, np.int64), np.zeros((0, count), np.float32))
    right_MN = torch.zeros(len(by_row), count)
    for place, own in enumerate(by_row.values()):
        right_MN[place, own] = 1
    some = rows.taken(np.fromiter(by_row, np.int64))
    x_MF, columns = some.narrowed()
    return Block(columns, squared_hinge(x_MF, right_MN, cost).numpy())


def grouped(numbers: Sequence[int] | NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Return the places of each number, from 0 to the largest."""
    order = np.argsort(numbers, kind="stable")
    counts = np.bincount(np.asarray(numbers))
    return np.split(order, counts.cumsum()[:-1])


def levels(members: Sequence[NDArray[np.int64]], at_most: int = 16) -> Iterator[list[NDArray[np.int64]]]:
    """Yield the groups of a tree from the top: so many neighbours together, until one group holds all."""
    sizes = [len(members)]
    while sizes[-1] > 1:
        sizes.append(-(-sizes[-1] // at_most))
    for lower, upper in reversed(list(pairwise(sizes))):
        yield [np.arange(group * at_most, min(lower, (group + 1) * at_most)) for group in range(upper)]
