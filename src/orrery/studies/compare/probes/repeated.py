"""Rows whose second part repeats the first: what only a model that looks back can continue."""

from dataclasses import dataclass

import torch
from torch import Tensor

from orrery.models.inputs import Batch
from orrery.nn.cross_entropy import IGNORED

VOCABULARY = 32


@dataclass(frozen=True)
class Repeated:
    """Different tokens at random, then a part of them again from a place at random: nothing tells it but its tokens.

    Were it always the same part, a head could count how far back to look.
    """

    new: int = 20
    again: int = 12
    rows: int = 48

    def __call__(self, rng: torch.Generator) -> Batch:
        """Draw a batch; the first token that comes again cannot be known."""
        new_BL = torch.rand(self.rows, VOCABULARY, generator=rng).argsort(1)[:, : self.new]
        begin_B1 = torch.randint(self.new - self.again + 1, (self.rows, 1), generator=rng)
        ids_BL = torch.cat([new_BL, new_BL.gather(1, begin_B1 + torch.arange(self.again))], 1)
        targets_BL = torch.full_like(ids_BL, IGNORED)
        targets_BL[:, self.new : -1] = ids_BL[:, self.new + 1 :]
        return {"ids": ids_BL, "targets": targets_BL}

    def corrupted(self, batch: Batch, rng: torch.Generator) -> Tensor:
        """Return the same rows where other tokens came first, so that nothing is repeated on purpose."""
        ids_BL: Tensor = batch["ids"]
        other_BL = torch.rand(len(ids_BL), VOCABULARY, generator=rng).argsort(1)[:, : self.new]
        return torch.cat([other_BL, ids_BL[:, self.new :]], 1)
