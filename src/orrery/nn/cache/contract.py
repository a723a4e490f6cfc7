"""What a stack asks of its cache of earlier calls, and the null object that remembers nothing.

A cache stores the *position of each key* beside the keys. Masks and biases follow from positions alone, and a slot
that holds nothing hides itself, because its position is ``EMPTY_SLOT``. The stack reserves the places of new tokens,
once a forward; each attention then extends its own layer. What is stored is the attention's own affair: keys and
values, or the latent and the shared key of multi-head latent attention.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from orrery.nn.attention.operands import KeysValues
from orrery.nn.masks import EMPTY_SLOT, TokenPositions

Pair = tuple[Tensor, Tensor]
State = tuple[Tensor, ...]
"""What a recurrence leaves to its next call, ``[B, ...]`` each."""
Place = tuple[int, str]
"""Whose state it is: a depth, and the role of the branch, of which a block may have several."""


@dataclass(frozen=True)
class Layer:
    """Who is running: the depth, the path that taps show, and the share of the cache.

    ``turn`` counts the depths above at which the same block stands.
    """

    depth: int
    path: str
    cache: "Cache"
    turn: int = 0

    def extend(self, mask: str, k_BKLC: Float[Tensor, "B K L C"], v_BKLE: Float[Tensor, "B K L E"]) -> KeysValues:
        """Store the new keys and values and return all that the mask of this name may show, old ones first."""
        return self.cache.extend(mask, self.depth, k_BKLC, v_BKLE)

    def cross_attention_keys(self, project: Callable[[], Pair]) -> KeysValues:
        """Return this depth's keys and values of the encoder's output, projected once a session."""
        return self.cache.cross_attention_keys(self.depth, project)

    def load_state(self, mask: str, role: str) -> State | None:
        """Return the state that this depth's recurrence left in an earlier call, if there was one."""
        return self.cache.load_state(mask, (self.depth, role))

    def store_state(self, mask: str, role: str, state: State) -> None:
        """Keep the state for the next call."""
        self.cache.store_state(mask, (self.depth, role), state)


class Cache(ABC):
    """What a stack asks of its cache of earlier calls."""

    remembers: ClassVar[bool] = True
    """Whether a later call sees what this one stores."""

    @abstractmethod
    def next_positions(self, tokens: int, device: torch.device) -> Int[Tensor, "B L"]:
        """Return the positions that the next ``tokens`` tokens of each row take."""

    @abstractmethod
    def reserve(
        self,
        places: TokenPositions,
        real_BL: Bool[Tensor, "B L"] | None,
        masks: Iterable[str],
        counts: Sequence[int] | None = None,
    ) -> Mapping[str, TokenPositions]:
        """Reserve slots for one call and return, by mask, the places of all keys, the new ones among them.

        ``counts`` says how many tokens of each row are real, where the host knows; a cache that has to know, and is
        given ``real_BL`` alone, waits for the device to count them.
        """

    @abstractmethod
    def shows_only_past(self, mask: str) -> bool:
        """Return whether every key that was shown under this mask is known to be real, and none to be later.

        Then a single new token sees them all, and needs no matrix. No means that only a matrix can say it.
        """

    @abstractmethod
    def extend(self, mask: str, depth: int, k_BKLC: Tensor, v_BKLE: Tensor) -> KeysValues:
        """Write one depth's new keys and values and return all of them."""

    @abstractmethod
    def cross_attention_keys(self, depth: int, project: Callable[[], Pair]) -> KeysValues:
        """Return one depth's keys and values of the encoder's output."""

    @abstractmethod
    def load_state(self, mask: str, place: Place) -> State | None:
        """Return one depth's recurrent state, if an earlier call left one."""

    @abstractmethod
    def store_state(self, mask: str, place: Place, state: State) -> None:
        """Keep one depth's recurrent state."""

    @property
    @abstractmethod
    def capacity(self) -> int | None:
        """The number of tokens a row may reach, where one was named."""

    @property
    @abstractmethod
    def longest(self) -> int:
        """The number of tokens that the longest row has taken."""


class Uncached(Cache):
    """No cache: the null object of a full forward."""

    remembers: ClassVar[bool] = False

    def next_positions(self, tokens: int, device: torch.device) -> Int[Tensor, "B L"]:
        """Count from zero; one row broadcasts over the batch."""
        return torch.arange(tokens, device=device)[None]

    def reserve(
        self,
        places: TokenPositions,
        real_BL: Bool[Tensor, "B L"] | None,
        masks: Iterable[str],
        counts: Sequence[int] | None = None,
    ) -> Mapping[str, TokenPositions]:
        """Return the call's own places, with the unreal ones hidden."""
        if real_BL is not None:
            places = TokenPositions(places.positions.masked_fill(~real_BL, EMPTY_SLOT), places.documents, places.prefix)
        return dict.fromkeys(masks, places)

    def shows_only_past(self, mask: str) -> bool:
        """Return no: nothing here counts the padding of a call."""
        return False

    def extend(self, mask: str, depth: int, k_BKLC: Tensor, v_BKLE: Tensor) -> KeysValues:
        """Return the new keys and values alone."""
        return KeysValues(k_BKLC, v_BKLE)

    def cross_attention_keys(self, depth: int, project: Callable[[], Pair]) -> KeysValues:
        """Return the projection, computed at every call."""
        return KeysValues(*project())

    def load_state(self, mask: str, place: Place) -> State | None:
        """Return nothing: a full forward begins at the beginning."""
        return None

    def store_state(self, mask: str, place: Place, state: State) -> None:
        """Keep nothing: a full forward has no next call."""

    @property
    def capacity(self) -> int | None:
        """Return nothing: a full forward sees exactly its own tokens."""
        return None

    @property
    def longest(self) -> int:
        """Return zero: nothing came before."""
        return 0


UNCACHED = Uncached()
