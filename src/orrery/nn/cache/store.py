"""What every store of a cache can do: keep what one mask may show again, and have its rows handled in place."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

from jaxtyping import Bool, Int
from torch import Tensor

from orrery.nn.attention.operands import KeysValues
from orrery.nn.cache.contract import Place, State
from orrery.nn.masks import TokenPositions


class Reservation(NamedTuple):
    """The new tokens of one call, as a store sees them.

    Attributes:
        before: how many tokens each row had, known on the host.
        after: how many it has now.
        after_B: the same as ``after``, on the device.
        positions_BL: of the new tokens, how many of its row are before each; ``EMPTY_SLOT`` where there is padding.
        real_BL: which of them are no padding; ``None`` where all are.
    """

    before: Sequence[int]
    after: Sequence[int]
    after_B: Int[Tensor, "B"]
    positions_BL: Int[Tensor, "B L"]
    real_BL: Bool[Tensor, "B L"] | None


class Store(ABC):
    """What is kept of the tokens under one mask, or under all. Its owner counts the tokens and calls nobody else's."""

    @property
    @abstractmethod
    def kind(self) -> str:
        """What it keeps, in words: only two of one kind can be joined."""

    @abstractmethod
    def reserve(self, call: Reservation) -> TokenPositions:
        """Make room for new tokens and return the places of all keys that will be shown."""

    def shows_only_past(self) -> bool:
        """Return whether all keys of the last reservation are known to be real, and none to be later."""
        return False

    @abstractmethod
    def extend(self, mask: str, depth: int, k_BKLC: Tensor, v_BKLE: Tensor) -> KeysValues:
        """Write one depth's new keys and values and return all of them."""

    @abstractmethod
    def load_state(self, mask: str, place: Place) -> State | None:
        """Return one depth's recurrent state, if an earlier call left one."""

    @abstractmethod
    def store_state(self, mask: str, place: Place, state: State) -> None:
        """Keep one depth's recurrent state."""

    @abstractmethod
    def refuse_to_forget(self, before: Sequence[int], after: Sequence[int]) -> None:
        """Refuse to cut rows from ``before`` to ``after`` tokens where that would show tokens that are gone.

        Raises:
            UsageError: they are.
        """

    @abstractmethod
    def forget(self, lengths: Sequence[int], lengths_B: Int[Tensor, "B"]) -> None:
        """Forget what lies beyond these lengths; ``lengths_B`` are the same on the device."""

    @abstractmethod
    def select(self, rows: Sequence[int], rows_N: Int[Tensor, "N"]) -> None:
        """Keep the given rows, in that order; one may come several times; ``rows_N`` are the same on the device."""

    @abstractmethod
    def join(self, other: "Store") -> None:
        """Append the rows of another store of the same kind, which is used up."""

    @abstractmethod
    def copy(self, rows: Sequence[int] | None = None) -> "Store":
        """Return a store of the given rows, by default of all, into which can be written without a change of this."""

    @abstractmethod
    def bytes(self) -> int:
        """Return the bytes that are allocated."""
