"""The cache of recurrences: one state a row and depth, of constant size however long the row grows."""

from collections.abc import Callable, Iterable, Mapping

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from orrery.errors import UsageError
from orrery.nn.attention.operands import KeysValues
from orrery.nn.cache.contract import Pair, Place, State
from orrery.nn.cache.rows import RowCache
from orrery.nn.cache.stored import join_memory
from orrery.nn.masks import EMPTY_SLOT, TokenPositions


class StateCache(RowCache):
    """What each depth's recurrence left after each row's last token. Shapes: ``[B, D]`` each."""

    def __init__(self, rows: int, capacity: int, *, device: torch.device | None = None) -> None:
        self._capacity = capacity
        self.lengths_B = torch.zeros(rows, dtype=torch.long, device=device)
        self.states: dict[Place, State] = {}
        self.memory: dict[int, Pair] = {}

    @property
    def capacity(self) -> int:
        """Return the number of tokens a row may reach; the states themselves have no bound."""
        return self._capacity

    @property
    def kind(self) -> str:
        """Return that it holds recurrent states."""
        return "recurrent"

    def refuse_to_forget(self, lengths_B: Int[Tensor, "B"]) -> None:
        """Refuse to cut any row: a state holds all that came before in one vector.

        Raises:
            UsageError: a row would get shorter.
        """
        if bool((lengths_B < self.lengths_B).any()):
            raise UsageError(
                "a recurrent state cannot go back: it keeps no tokens", "start again from the shorter text"
            )

    def reserve(
        self, places: TokenPositions, real_BL: Bool[Tensor, "B L"] | None, masks: Iterable[str]
    ) -> Mapping[str, TokenPositions]:
        """Count the new tokens and show them alone: the older ones are in the state."""
        rows, tokens = len(self.lengths_B), places.positions.shape[1]
        positions_BL = places.positions.expand(rows, tokens)
        if real_BL is not None:
            positions_BL = positions_BL.masked_fill(~real_BL, EMPTY_SLOT)
        self.lengths_B = self.lengths_B + (tokens if real_BL is None else real_BL.sum(1))
        return dict.fromkeys(masks, TokenPositions(positions_BL))

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

    def cross_attention_keys(self, depth: int, project: Callable[[], Pair]) -> KeysValues:
        """Project the encoder's output at the first call and keep the result."""
        if depth not in self.memory:
            self.memory[depth] = project()
        return KeysValues(*self.memory[depth])

    def select(self, rows: Int[Tensor, "N"]) -> "StateCache":
        """Return a cache of the given rows, in that order."""
        new = StateCache(0, self._capacity)
        new.lengths_B = self.lengths_B[rows]
        new.states = {place: tuple(part[rows] for part in state) for place, state in self.states.items()}
        new.memory = {depth: (k[rows], v[rows]) for depth, (k, v) in self.memory.items()}
        return new

    def join(self, other: RowCache) -> "StateCache":
        """Return a cache of this one's rows followed by the other's.

        Raises:
            UsageError: the other is of another kind or capacity.
        """
        self.refuse_other_kind(other)
        assert isinstance(other, StateCache)
        new = StateCache(0, self._capacity)
        new.lengths_B = torch.cat([self.lengths_B, other.lengths_B])
        for place, state in self.states.items():
            new.states[place] = tuple(torch.cat(pair) for pair in zip(state, other.states[place], strict=True))
        new.memory = {depth: join_memory(pair, other.memory[depth]) for depth, pair in self.memory.items()}
        return new

    def truncate(self, lengths_B: Int[Tensor, "B"]) -> None:
        """Refuse to forget; lengths that cut nothing are obeyed.

        Raises:
            UsageError: a row would get shorter.
        """
        self.refuse_to_forget(lengths_B)

    def bytes(self) -> int:
        """Return the bytes of the states."""
        own = sum(part.nbytes for state in self.states.values() for part in state)
        return own + sum(part.nbytes for pair in self.memory.values() for part in pair)
