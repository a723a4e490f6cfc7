"""Simple methods for many labels: the most frequent ones, those of like texts, a classifier a label over all texts."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
import torch

from orrery.data.many_labels.features import SparseRows
from orrery.tasks.xbert.linear import squared_hinge
from orrery.tasks.xbert.ranker import Ranking

NEIGHBOURS, AT_ONCE, COLUMNS = 10, 256, 500


def popular(labels: Sequence[Sequence[int]], count: int, most: int) -> list[Ranking]:
    """Return the most frequent labels, for each of ``count`` texts the same."""
    counts = Counter(label for own in labels for label in own)
    best = sorted(counts, key=lambda label: (-counts[label], label))[:most]
    return [[(label, float(np.log(counts[label] / len(labels)))) for label in best]] * count


def neighbours(
    train: SparseRows, labels: Sequence[Sequence[int]], rows: SparseRows, most: int, k: int = NEIGHBOURS
) -> list[Ranking]:
    """Return the labels of the ``k`` texts of the largest cosine, each weighing its cosine."""
    found: list[Ranking] = []
    turned = train.tensor()
    for start in range(0, len(rows), AT_ONCE):
        some = rows.taken(np.arange(start, min(len(rows), start + AT_ONCE))).tensor().to_dense()
        cosines, near = (turned @ some.t()).topk(min(k, len(train)), dim=0)
        for column in range(len(some)):
            weights: Counter[int] = Counter()
            for cosine, place in zip(cosines[:, column].tolist(), near[:, column].tolist(), strict=True):
                for label in labels[place]:
                    weights[label] += cosine
            best = sorted(weights, key=lambda label: (-weights[label], label))[:most]
            found.append([(label, float(np.log(max(weights[label], 1e-30)))) for label in best])
    return found


def one_versus_rest(
    train: SparseRows, labels: Sequence[Sequence[int]], count: int, rows: SparseRows, most: int, cost: float = 1.0
) -> list[Ranking]:
    """Return the best of all ``count`` labels, each with a classifier learned from all texts (DiSMEC's way)."""
    x, asked = train.tensor(), rows.tensor()
    scores_MN = torch.empty(len(rows), count)
    for start in range(0, count, COLUMNS):
        right_MN = torch.zeros(len(train), min(COLUMNS, count - start))
        for number, own in enumerate(labels):
            for label in own:
                if start <= label < start + COLUMNS:
                    right_MN[number, label - start] = 1
        scores_MN[:, start : start + COLUMNS] = asked @ squared_hinge(x, right_MN, cost)
    best, places = scores_MN.topk(min(most, count), dim=1)
    return [list(zip(p, s, strict=True)) for p, s in zip(places.tolist(), best.tolist(), strict=True)]
