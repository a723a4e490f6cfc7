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
    def place(self, ids_BL: Int[Tensor, "B L"]) -> Int[Tensor, "B"]:
        """Return the number of the last token of each row."""

    def counted(self, ids_BL: Int[Tensor, "B L"]) -> Bool[Tensor, "B L"]:
        """Return which tokens stand up to there."""
        return torch.arange(ids_BL.shape[1], device=ids_BL.device) <= self.place(ids_BL)[:, None]


@spec
class FirstOf(RowEnd):
    """The first place of one token, as CLIP's reference takes it; the very first where the row has none."""

    token: int

    def place(self, ids_BL: Int[Tensor, "B L"]) -> Int[Tensor, "B"]:
        """Return the first place of the token."""
        return (ids_BL == self.token).int().argmax(-1)


@spec
class HighestId(RowEnd):
    """The first place of the highest id of the row: how CLIP's first files mean it, whose end token is the last id."""

    def place(self, ids_BL: Int[Tensor, "B L"]) -> Int[Tensor, "B"]:
        """Return the place of the highest id."""
        return ids_BL.argmax(-1)


@spec
class LastPlace(RowEnd):
    """The last place of the row, be it padding: SigLIP's texts are all of one length."""

    def place(self, ids_BL: Int[Tensor, "B L"]) -> Int[Tensor, "B"]:
        """Return the last place."""
        return torch.full_like(ids_BL[:, 0], ids_BL.shape[1] - 1)
