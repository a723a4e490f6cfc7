"""XR-Linear: a tree of linear models, searched with a beam (Yu et al. 2022)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orrery.data.many_labels.features import SparseRows
from orrery.tasks.xbert.ranker import Done, Ranker, Ranking, fitted, levels

BEAM = 10


@dataclass(frozen=True)
class TreeOfLinear:
    """A ranker for each level, from the top: clusters of clusters, clusters, labels."""

    levels: Sequence[Ranker]

    def clusters(self, rows: SparseRows, beam: int = BEAM) -> Iterator[Ranking]:
        """Yield the likeliest clusters of each row."""
        for number in range(len(rows)):
            found: Ranking = [(0, 0.0)]
            for level in self.levels[:-1]:
                found = level.within(rows, number, found, beam)
            yield found

    def rank(self, rows: SparseRows, most: int, beam: int = BEAM) -> list[Ranking]:
        """Return the best labels of each row."""
        return [
            self.levels[-1].within(rows, number, found, most) for number, found in enumerate(self.clusters(rows, beam))
        ]


def tree_of_linear(
    rows: SparseRows,
    labels: Sequence[Sequence[int]],
    members: Sequence[NDArray[np.int64]],
    cost: float = 1.0,
    done: Done = lambda count, total: None,
) -> TreeOfLinear:
    """Return the models of each level, each node learned from the rows that belong to it (teacher-forced negatives).

    Args:
        rows: the texts, with a column of ones.
        labels: the labels of each row.
        members: the labels of each cluster.
        cost: what a fault costs beside the length of the weights.
        done: told how many clusters are done.
    """
    home = {int(label): group for group, own in enumerate(members) for label in own}
    numbers: list[Sequence[int]] = [sorted({home[label] for label in own}) for own in labels]
    found = [fitted(rows, labels, members, (), cost, done)]
    for groups in reversed(list(levels(members))):
        found.append(fitted(rows, numbers, groups, (), cost))
        above = {int(child): group for group, own in enumerate(groups) for child in own}
        numbers = [sorted({above[child] for child in own}) for own in numbers]
    return TreeOfLinear(found[::-1])
