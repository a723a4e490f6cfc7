"""Batches of matches: both texts of each pair as rows, those of a pair never in different batches."""

from typing import Any

import torch
from torch import Tensor

from orrery.data.batches.token_windows import PureSource


def both_as_rows(batch: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return ``ids``, ``real`` [2B, L] and ``group`` [2B]: all first texts, then all second ones.

    A batch of pairs has ``ids``, ``second`` [B, L] each, ``real`` of the first, ``second_length`` and ``group`` [B].
    """
    first, second = batch["ids"], batch["second"]
    real = torch.arange(second.shape[1]) < batch["second_length"][:, None]
    width = max(first.shape[1], second.shape[1])
    ids = [torch.nn.functional.pad(side, (0, width - side.shape[1])) for side in (first, second)]
    known = [torch.nn.functional.pad(side, (0, width - side.shape[1])) for side in (batch["real"], real)]
    return {"ids": torch.cat(ids), "real": torch.cat(known), "group": batch["group"].repeat(2)}


class MatchBatches(PureSource):
    """The batches of pairs of another source, with both texts as rows; there are as many.

    For evaluation the last batch may have fewer, and one pair alone costs nothing.
    """

    def __init__(self, pairs: Any) -> None:
        self.pairs = pairs
        self.tokens_per_step, self.rows_per_epoch = 2 * pairs.tokens_per_step, pairs.rows_per_epoch

    def __len__(self) -> int:
        return len(self.pairs)

    def batch(self, step: int) -> dict[str, Tensor]:
        """Return the batch of ``step``."""
        return both_as_rows(self.pairs.batch(step))
