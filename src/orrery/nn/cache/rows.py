"""What every cache of rows can do: rows have lengths of their own, and can be selected, joined and cut."""

from abc import abstractmethod

import torch
from jaxtyping import Int
from torch import Tensor

from orrery.errors import UsageError
from orrery.nn.cache.contract import Cache


class RowCache(Cache):
    """A cache whose rows can be handled: selected, joined, cut."""

    lengths_B: Int[Tensor, "B"]

    @property
    @abstractmethod
    def capacity(self) -> int:
        """The number of tokens a row may reach."""

    @property
    @abstractmethod
    def kind(self) -> str:
        """What the cache is, in words: only two of one kind and capacity can be joined."""

    @abstractmethod
    def refuse_to_forget(self, lengths_B: Int[Tensor, "B"]) -> None:
        """Refuse to cut rows to ``lengths_B`` where that would show tokens that are gone.

        Raises:
            UsageError: they are.
        """

    @abstractmethod
    def select(self, rows: Int[Tensor, "N"]) -> "RowCache":
        """Return a cache of the given rows, in that order; a row may come several times (beams) or not at all."""

    @abstractmethod
    def join(self, other: "RowCache") -> "RowCache":
        """Return a cache of this one's rows followed by the other's.

        Raises:
            UsageError: the two are of different kinds or capacities.
        """

    @abstractmethod
    def truncate(self, lengths_B: Int[Tensor, "B"]) -> None:
        """Forget what lies beyond ``lengths_B`` in each row; the slots hide themselves and are written again.

        Raises:
            UsageError: tokens that would be seen again are gone; nothing has changed.
        """

    @abstractmethod
    def bytes(self) -> int:
        """Return the bytes allocated for keys and values, the spare slots included."""

    def next_positions(self, tokens: int, device: torch.device) -> Int[Tensor, "B L"]:
        """Continue each row from its own length."""
        return self.lengths_B[:, None] + torch.arange(tokens, device=device)

    def refuse_other_kind(self, other: "RowCache") -> None:
        """Refuse to join a cache that is not like this one.

        Raises:
            UsageError: it is of another kind or capacity.
        """
        if (self.kind, self.capacity) != (other.kind, other.capacity):
            raise UsageError(
                f"caches cannot be joined: one is {self.kind} and holds {self.capacity} tokens, "
                f"the other {other.kind}, {other.capacity}",
                "start both with one kind and capacity",
            )
