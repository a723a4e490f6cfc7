"""The base of mixers whose state is a sum of outer products: one says what tokens do to it, and what comes out."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeAlias

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from orrery.nn.cache.contract import State
from orrery.nn.linear import matrix_state
from orrery.nn.linear.update import Update
from orrery.nn.mixer import Form, Show, StatefulMixer, unseen

_Run: TypeAlias = Callable[[Update, Tensor], tuple[Tensor, Tensor]]


class MatrixMemory(StatefulMixer, ABC):
    """``S_t, y_t = update(x_t) on S_{t-1}`` and ``out_t = finish(y_t, x_t)``, H states ``[C, E]`` side by side.

    What a token does (``update``) and what becomes of the answer (``finish``) depend on it alone, so that all forms
    share them; only what ``enter`` makes of the inputs, a short convolution, looks back, and it carries its own state
    behind the state. A single token takes the step in every form. Shapes: ``[B, L, D]`` to ``[B, L, D]``.
    """

    def __init__(self, mask: str, size: int, shape: tuple[int, int, int]) -> None:
        """Take the mask, the tokens of a piece, and heads, channels of a key as the state sees it, and of a value.

        Raises:
            UsageError: the pieces cannot be halved again and again.
        """
        super().__init__()
        matrix_state.piece_size(1, size)
        self.mask, self.size, self.shape = mask, size, shape

    @property
    def heads(self) -> int:
        """The number of states."""
        return self.shape[0]

    @abstractmethod
    def update(self, x_BLE: Float[Tensor, "B L E"], show: Show) -> Update:
        """Return what tokens do to the state; ``show`` sees what is inside, ``[B, L, ...]``."""

    @abstractmethod
    def finish(
        self, y_BLHE: Float[Tensor, "B L H E"], x_BLF: Float[Tensor, "B L F"], show: Show
    ) -> Float[Tensor, "B L D"]:
        """Return the output, from what was read and from what ``enter`` made of the inputs."""

    def enter(
        self, x_BLD: Float[Tensor, "B L D"], real_BL: Bool[Tensor, "B L"] | None, carried: State
    ) -> tuple[Float[Tensor, "B L E"], State]:
        """Return what ``update`` and ``finish`` read, and the state behind that of the update: the inputs, and none."""
        return x_BLD, ()

    @property
    def forms(self) -> Mapping[str, Form]:
        """Piece by piece, and all pairs at once."""
        return {
            "chunked": self.over_rows(partial(self._rows, lambda update, state: update.chunked(state, self.size))),
            "parallel": self.over_rows(partial(self._rows, lambda update, state: update.parallel(state))),
        }

    def begin(self, x_BLD: Float[Tensor, "B L D"]) -> State:
        """Return an empty state."""
        return (matrix_state.empty(x_BLD, *self.shape),)

    def step(self, x_BD: Float[Tensor, "B D"], state: State, show: Show) -> tuple[Float[Tensor, "B D"], State]:
        """Enter, update, read, finish, for one token a row."""
        one = partial(_show_token, show)
        x_B1E, carried = self.enter(x_BD[:, None], None, state[1:])
        y_B1HE, after_BHCE = self.update(x_B1E, one).step(state[0])
        return self.finish(y_B1HE, x_B1E, one)[:, 0], (after_BHCE, *carried)

    def _rows(
        self, run: _Run, x_NTD: Tensor, real_NT: Bool[Tensor, "N T"] | None, state: State
    ) -> tuple[Tensor, State]:
        if x_NTD.shape[1] == 1:
            y_ND, state = self.step(x_NTD[:, 0], state, unseen)
            return y_ND[:, None], state
        x_NTE, carried = self.enter(x_NTD, real_NT, state[1:])
        update = self.update(x_NTE, unseen)
        y_NTHE, after_NHCE = run(update if real_NT is None else update.only(real_NT), state[0])
        return self.finish(y_NTHE, x_NTE, unseen), (after_NHCE, *carried)


def in_heads(x_BLE: Float[Tensor, "B L E"], number: int) -> Float[Tensor, "B L H C"]:
    """Return vectors cut into as many heads."""
    return x_BLE.unflatten(-1, (number, -1))


def _show_token(show: Show, name: str, value: Tensor) -> Tensor:
    """Show what one token a row has in its heads as one vector; return it, or what stands in for it, in its shape."""
    value_BE = value.flatten(1)
    seen_BE = show(name, value_BE)
    return value if seen_BE is value_BE else seen_BE.view_as(value)


def show_decay(decay_BLHC: Float[Tensor, "B L *H"], show: Show) -> Float[Tensor, "B L *H"]:
    """Show a log decay as the forget gate that it is, ``exp(g)``: one keeps all, zero nothing; return the logarithm."""
    gate_BLHC = decay_BLHC.exp()
    seen_BLHC = show("forget_gate", gate_BLHC)
    if seen_BLHC is gate_BLHC:
        return decay_BLHC
    return seen_BLHC.clamp(min=torch.finfo(seen_BLHC.dtype).tiny).log()
