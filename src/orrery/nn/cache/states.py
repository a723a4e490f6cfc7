"""The store of recurrences: one state a row and depth, of constant size however long the row grows."""

from collections.abc import Sequence

import torch
from jaxtyping import Int
from torch import Tensor

from orrery.errors import UsageError
from orrery.nn.attention.operands import KeysValues
from orrery.nn.cache.contract import Place, State
from orrery.nn.cache.row_buffer import copied
from orrery.nn.cache.store import Reservation, Store
from orrery.nn.masks import TokenPositions


class StateStore(Store):
    """What each depth's recurrence left after each row's last token. Shapes: ``[B, ...]`` each."""

    def __init__(self) -> None:
        self.states: dict[Place, State] = {}

    @property
    def kind(self) -> str:
        """Return that it holds recurrent states."""
        return "recurrent"

    def refuse_to_forget(self, before: Sequence[int], after: Sequence[int]) -> None:
        """Refuse to cut any row: a state holds all that came before in one vector.

        Raises:
            UsageError: a row would get shorter.
        """
        if any(new < old for old, new in zip(before, after, strict=True)):
            raise UsageError(
                "a recurrent state cannot go back: it keeps no tokens", "start again from the shorter text"
            )

    def forget(self, lengths: Sequence[int], lengths_B: Int[Tensor, "B"]) -> None:
        """Forget nothing: lengths that cut a row are refused."""

    def reserve(self, call: Reservation) -> TokenPositions:
        """Show the new tokens alone: the older ones are in the state."""
        return TokenPositions(call.positions_BL)

    def extend(self, mask: str, depth: int, k_BKLC: Tensor, v_BKLE: Tensor) -> KeysValues:
        """Refuse keys and values.

        Raises:
            UsageError: always.
        """
        raise UsageError(
            f"the mask {mask!r} is a recurrence's and keeps no keys", "give the attention a mask of its own"
        )

    def load_state(self, mask: str, place: Place) -> State | None:
        """Return the state of one depth."""
        return self.states.get(place)

    def store_state(self, mask: str, place: Place, state: State) -> None:
        """Keep the state of one depth."""
        self.states[place] = state

    def select(self, rows: Sequence[int], rows_N: Int[Tensor, "N"]) -> None:
        """Keep the given rows, in that order."""
        self.states = {place: tuple(part[rows_N] for part in state) for place, state in self.states.items()}

    def join(self, other: Store) -> None:
        """Append the rows of another store."""
        assert isinstance(other, StateStore)
        for place, state in self.states.items():
            self.states[place] = tuple(torch.cat(pair) for pair in zip(state, other.states[place], strict=True))

    def copy(self, rows: Sequence[int] | None = None) -> "StateStore":
        """Return a store of the given rows that shares no memory with this one."""
        new = StateStore()
        new.states = {place: tuple(copied(part, rows) for part in state) for place, state in self.states.items()}
        return new

    def bytes(self) -> int:
        """Return the bytes of the states."""
        return sum(part.nbytes for state in self.states.values() for part in state)
