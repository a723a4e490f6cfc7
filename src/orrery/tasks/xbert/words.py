"""How likely each cluster is by the words of a text, beside what the encoder says: they know different things."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from orrery.data.many_labels.features import SparseRows
from orrery.tasks.xbert.linear import Block, hinged, squared_hinge
from orrery.tasks.xbert.reading import Matched

AT_ONCE = 256
"""Clusters that are learned together: their memory is what bounds it."""


@dataclass(frozen=True)
class ClustersByWords:
    """Linear classifiers of all clusters over the words of a text, and the encoder's share beside them.

    Attributes:
        block: the classifiers, a column for each cluster; without a row where the encoder's share is all.
        share: the encoder's.
    """

    block: Block
    share: float = 1.0

    def beside(self, rows: SparseRows, found: Sequence[Matched]) -> list[Matched]:
        """Return ``s log p(cluster) - (1 - s) max(0, 1 - w x)^3`` in the place of the encoder's ``log p``.

        Args:
            rows: the words of each text.
            found: what the encoder says of each.
        """
        own = rows.beside(torch.zeros(len(rows), 0))
        mixed = []
        for number, each in enumerate(found):
            said = torch.from_numpy(hinged(self.block.scores(*own.row(number))))
            mixed.append(replace(each, log_p_Z=self.share * each.log_p_Z + (1 - self.share) * said))
        return mixed


def encoder_alone(clusters: int) -> ClustersByWords:
    """Return what leaves the encoder's likelihoods as they are."""
    return ClustersByWords(Block(np.zeros(0, np.int64), np.zeros((0, clusters), np.float32)))


def clusters_by_words(
    rows: SparseRows, labels: Sequence[Sequence[int]], cluster_of: Sequence[int], share: float, cost: float = 1.0
) -> ClustersByWords:
    """Return classifiers of the clusters, each learned from all texts; none are learned where the share is 1.

    Args:
        rows: the words of each text.
        labels: the labels of each text.
        cluster_of: the cluster of each label.
        share: the encoder's.
        cost: what a fault costs beside the length of the weights.
    """
    count = max(cluster_of) + 1
    if share == 1:
        return encoder_alone(count)
    own = [{cluster_of[label] for label in each} for each in labels]
    x_MF, columns = rows.beside(torch.zeros(len(rows), 0)).narrowed()
    weights = np.zeros((len(columns), count), np.float32)
    for start in range(0, count, AT_ONCE):
        right_MN = torch.zeros(len(rows), min(AT_ONCE, count - start))
        for number, each in enumerate(own):
            for cluster in each:
                if start <= cluster < start + AT_ONCE:
                    right_MN[number, cluster - start] = 1
        weights[:, start : start + AT_ONCE] = squared_hinge(x_MF, right_MN, cost).numpy()
    return ClustersByWords(Block(columns, weights), share)
