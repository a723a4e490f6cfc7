"""Batches of texts with several labels each, of which one is drawn each time that the text is read."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from orrery.data.batches.padded_rows import PaddedRows, SequentialRows
from orrery.data.batches.seeds import derive_seed
from orrery.data.batches.token_windows import PureSource

PLACE = "place"
"""The field of a row with the number of its labels among all."""


class DrawnLabels(PureSource):
    """``labels`` [B]: one of each text's, all equally likely, the same at the same step.

    Cross entropy with it is on average that with the share of each label: ``-(1/n) sum log p`` over the n labels of a
    text (Menon et al. 2019, "pick-all-labels").
    """

    def __init__(self, rows: PaddedRows, labels: Sequence[Sequence[int]], seed: int) -> None:
        self.rows, self.labels, self.seed = rows, labels, seed
        self.lengths, self.batches = rows.lengths, rows.batches
        self.tokens_per_step, self.rows_per_epoch = rows.tokens_per_step, rows.rows_per_epoch

    def batch(self, step: int) -> dict[str, Tensor]:
        """Return the batch of ``step``."""
        return with_labels(self.rows.batch(step), self.labels, derive_seed(self.seed, "labels", step))


class DrawnInTurn(PureSource):
    """The same for evaluation: all texts once, each with one of its labels."""

    def __init__(self, rows: SequentialRows, labels: Sequence[Sequence[int]], seed: int) -> None:
        self.rows, self.labels, self.seed = rows, labels, seed
        self.tokens_per_step, self.rows_per_epoch = rows.tokens_per_step, rows.rows_per_epoch

    def __len__(self) -> int:
        return len(self.rows)

    def batch(self, step: int) -> dict[str, Tensor]:
        """Return the batch of ``step``, from 0 to below ``len(self)``."""
        return with_labels(self.rows.batch(step), self.labels, derive_seed(self.seed, "labels in turn", step))


def with_labels(batch: dict[str, Tensor], labels: Sequence[Sequence[int]], seed: int) -> dict[str, Tensor]:
    """Return a batch with one label of each text in the place of the text's number."""
    rng = np.random.default_rng(seed)
    own = [labels[place] for place in batch[PLACE].tolist()]
    drawn = torch.tensor([each[int(rng.integers(len(each)))] for each in own])
    return {**{name: value for name, value in batch.items() if name != PLACE}, "labels": drawn}
