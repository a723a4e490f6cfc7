"""Where a row of tokens ends for a head that reads its last one: by the id of a token, whatever is padding."""

from abc import abstractmethod

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from orrery.nn.spec import Value, spec


@spec
class RowEnd(Value):
    """A rule from token numbers to the place at which each row ends."""

    @abstractmethod
    def place(self, ids_BL: Int[Tensor, "B L"], real_BL: Bool[Tensor, "B L"]) -> Int[Tensor, "B"]:
        """Return the number of the last token of each row."""

    def counted(self, ids_BL: Int[Tensor, "B L"], real_BL: Bool[Tensor, "B L"] | None) -> Bool[Tensor, "B L"]:
        """Return which real tokens stand up to there."""
        real_BL = torch.ones_like(ids_BL, dtype=torch.bool) if real_BL is None else real_BL
        return real_BL & (torch.arange(ids_BL.shape[1], device=ids_BL.device) <= self.place(ids_BL, real_BL)[:, None])


@spec
class FirstOf(RowEnd):
    """The first place of one token, as CLIP's reference takes it; the first of the row where it has none."""

    token: int

    def place(self, ids_BL: Int[Tensor, "B L"], real_BL: Bool[Tensor, "B L"]) -> Int[Tensor, "B"]:
        """Return the first place of the token."""
        return (real_BL.int() + 2 * (real_BL & (ids_BL == self.token)).int()).argmax(-1)


@spec
class HighestId(RowEnd):
    """The first place of the highest id of the row: how CLIP's first files mean it, whose end token is the last id."""

    def place(self, ids_BL: Int[Tensor, "B L"], real_BL: Bool[Tensor, "B L"]) -> Int[Tensor, "B"]:
        """Return the place of the highest id."""
        return ids_BL.masked_fill(~real_BL, -1).argmax(-1)
