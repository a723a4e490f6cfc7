"""The base of mixers that convolve over whole rows with the kernel of a linear system."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeAlias

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from orrery.nn.cache.contract import State
from orrery.nn.linear.linear_system import LinearSystem, from_nothing, in_pieces, in_rows
from orrery.nn.linear.matrix_state import full_precision
from orrery.nn.mixer import Form, Show, StatefulMixer, unseen
from orrery.nn.rehearsal import rehearsing

_Way: TypeAlias = Callable[[LinearSystem, Tensor, Tensor | None, Tensor], tuple[Tensor, Tensor]]


class LongConvolution(StatefulMixer, ABC):
    """``h_t = A h_{t-1} + B u_t``, ``out_t = finish(C h_t + D u_t, beside_t)``, channel by channel.

    ``u`` and what stands beside it are made of the inputs by ``enter``, which may look back through a short convolution
    that carries its own state behind h. The system is linear and its numbers do not depend on the token, so that over a
    row it is a convolution. h has the format of the inputs, but float32 at least.
    Shapes: ``[B, L, D]`` to ``[B, L, D]``; h ``[B, F, E]``.
    """

    skip: Tensor
    """D, one number a channel."""
    state_shape: tuple[int, int]
    """Channels, and the real numbers of the state of each."""
    _kept: tuple[tuple[object, ...], LinearSystem] | None = None
    """The systems that were made last, with what they were made of."""

    @abstractmethod
    def system(self, dtype: torch.dtype) -> LinearSystem:
        """Return the systems of all channels, discretised, in a format of real numbers."""

    def discretised(self, dtype: torch.dtype) -> LinearSystem:
        """Return the systems; while nothing learns they are kept for the next token, until a parameter changes."""
        if torch.is_grad_enabled() or rehearsing():
            return self.system(dtype)
        now = (dtype, *((parameter.data_ptr(), parameter._version) for parameter in self.parameters()))
        if self._kept is None or self._kept[0] != now:
            self._kept = now, self.system(dtype)
        return self._kept[1]

    @abstractmethod
    def finish(self, y_BLF: Float[Tensor, "B L F"], beside_BLG: Tensor, show: Show) -> Float[Tensor, "B L D"]:
        """Return the output of what the systems say; ``show`` sees what is inside, ``[B, L, E]``."""

    def enter(
        self, x_BLD: Float[Tensor, "B L D"], real_BL: Bool[Tensor, "B L"] | None, carried: State, show: Show
    ) -> tuple[Float[Tensor, "B L F"], Tensor, State]:
        """Return what the systems read, what ``finish`` needs beside it, and the state behind h."""
        return x_BLD, x_BLD, ()

    @property
    def forms(self) -> Mapping[str, Form]:
        """Piece by piece, or whole rows, both by Fourier transforms."""
        ways = {"chunked": in_pieces, "parallel": in_rows}
        return {name: self.over_rows(partial(self._rows, way)) for name, way in ways.items()}

    @property
    def alone(self) -> Form:
        """Convolve with the kernel alone, as the papers train."""
        return self.over_rows(partial(self._rows, from_nothing))

    def begin(self, x_BLD: Float[Tensor, "B L D"]) -> State:
        """Return zeros."""
        dtype = torch.promote_types(x_BLD.dtype, torch.float32)
        return (x_BLD.new_zeros(len(x_BLD), *self.state_shape, dtype=dtype),)

    def step(self, x_BD: Float[Tensor, "B D"], state: State, show: Show) -> tuple[Float[Tensor, "B D"], State]:
        """Take one token a row."""
        h_BFE, *before = state
        one = partial(_show_token, show)
        u_B1F, beside, carried = self.enter(x_BD[:, None], None, tuple(before), one)
        u_BF = u_B1F[:, 0].to(h_BFE.dtype)
        with full_precision(h_BFE):
            system = self.discretised(h_BFE.dtype)
            h_BFE = system.advance(h_BFE, u_BF)
            y_BF = show("read", system.read(h_BFE)) + self.skip * u_BF
        return self.finish(y_BF[:, None].to(u_B1F.dtype), beside, one)[:, 0], (h_BFE, *carried)

    def _rows(
        self, way: _Way, x_NTD: Tensor, real_NT: Bool[Tensor, "N T"] | None, state: State
    ) -> tuple[Tensor, State]:
        h_NFE, *before = state
        u_NTF, beside, carried = self.enter(x_NTD, real_NT, tuple(before), unseen)
        u = u_NTF.to(h_NFE.dtype)
        with full_precision(h_NFE):
            y_NTF, h_NFE = way(self.discretised(h_NFE.dtype), u, real_NT, h_NFE)
            y_NTF = y_NTF + self.skip * u
        return self.finish(y_NTF.to(u_NTF.dtype), beside, unseen), (h_NFE, *carried)


def _show_token(show: Show, name: str, value_B1E: Tensor) -> Tensor:
    return show(name, value_B1E[:, 0])[:, None]
