"""A recurrence as a part of a block: one token after the other, each leaving a state to the next."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from orrery.errors import UsageError
from orrery.nn.attention.kernels import eager
from orrery.nn.cache import State
from orrery.nn.context import Context
from orrery.nn.recurrent.engine import narrow_formats
from orrery.nn.recurrent.segments import PackedSegments

Show: TypeAlias = Callable[[str, Tensor], Tensor]


class Recurrence(nn.Module, ABC):
    """``h_t = step(x_t, h_{t-1})`` for t = 1 ... L, from ``h_0 = 0`` or from what an earlier call left.

    A state is one or more vectors ``[B, D]``, the first of which is h, what the recurrence says.
    The definition is ``step``, and the eager kernel runs it token by token; every other kernel runs torch's engine
    over the whole row. Under a recorder the definition runs beside the engine, shows its gates and decides nothing.
    Padding gives zeros and leaves the state alone; a document begins from zero.

    Shapes: ``[B, L, D]`` to ``[B, L, D]``.
    """

    role: str = ""
    mask: str
    engine: nn.RNNBase

    @abstractmethod
    def step(self, x_BD: Float[Tensor, "B D"], state: State, show: Show) -> State:
        """Take one token a row and return the state after it; ``show`` sees every gate by name."""

    @property
    @abstractmethod
    def states(self) -> int:
        """The number of vectors in a state."""

    def of_input(self, x_BD: Float[Tensor, "B D"]) -> Float[Tensor, "B E"]:
        """Return ``W x + b`` for all gates at once."""
        weight, bias = self.engine.weight_ih_l0, self.engine.bias_ih_l0
        assert isinstance(weight, Tensor)
        assert isinstance(bias, Tensor)
        return nn.functional.linear(x_BD, weight, bias)

    def of_state(self, h_BD: Float[Tensor, "B D"]) -> Float[Tensor, "B E"]:
        """Return ``U h + d`` for all gates at once."""
        weight, bias = self.engine.weight_hh_l0, self.engine.bias_hh_l0
        assert isinstance(weight, Tensor)
        assert isinstance(bias, Tensor)
        return nn.functional.linear(h_BD, weight, bias)

    def forward(self, x_BLD: Float[Tensor, "B L D"], ctx: Context) -> Float[Tensor, "B L D"]:
        """Pass through every segment of the batch."""
        assert ctx.layer is not None
        segments = PackedSegments.of(ctx.masks[self.mask], *x_BLD.shape[:2])
        before = ctx.layer.resume(self.mask, self.role) or self._zeros(x_BLD)
        if segments is None:
            y_BLD, after = self._scan(x_BLD, None, before, ctx)
        else:
            began = tuple(part_BD[segments.row_N] for part_BD in before)
            y_NTD, ended = self._scan(segments.split(x_BLD), segments, began, ctx)
            y_BLD = segments.join(y_NTD)
            after = tuple(old.index_copy(0, segments.row_N, new) for old, new in zip(before, ended, strict=True))
        ctx.layer.leave(self.mask, self.role, after)
        return ctx.tap(self, "state", y_BLD)

    def _scan(self, x_BLD: Tensor, segments: PackedSegments | None, state: State, ctx: Context) -> tuple[Tensor, State]:
        if not len(x_BLD):
            return x_BLD, state
        lengths_B = None if segments is None else segments.length_N
        put = (lambda gate_BLE: gate_BLE) if segments is None else segments.join

        def show(name: str, gate_BLE: Tensor) -> Tensor:
            shown_BLE = put(gate_BLE)
            if ctx.tap(self, name, shown_BLE) is not shown_BLE:
                raise UsageError(f"the {name} of a recurrence is shown, not edited", "edit its state, or what it added")
            return gate_BLE

        if ctx.kernel is eager:
            return self.define(x_BLD, lengths_B, state, show)
        if ctx.taps is not None:
            show("stepwise", self.define(x_BLD, lengths_B, state, show)[0])
        with narrow_formats(x_BLD):
            return self._run(x_BLD, lengths_B, state)

    def define(
        self, x_BLD: Float[Tensor, "B L D"], lengths_B: Tensor | None, state: State, show: Show
    ) -> tuple[Tensor, State]:
        """Run ``step`` over right-padded rows; ``show`` sees each gate of all tokens, ``[B, L, D]``."""
        said, seen = [], dict[str, list[Tensor]]()

        def collect(name: str, gate_BD: Tensor) -> Tensor:
            seen.setdefault(name, []).append(gate_BD)
            return gate_BD

        for t, x_BD in enumerate(x_BLD.unbind(1)):
            after = self.step(x_BD, state, collect)
            if lengths_B is not None:
                going_B1 = (t < lengths_B)[:, None]
                after = tuple(torch.where(going_B1, new, old) for new, old in zip(after, state, strict=True))
            state = after
            said.append(state[0])
        for name, gates in seen.items():
            show(name, torch.stack(gates, 1))
        return torch.stack(said, 1), state

    def _run(self, x_BLD: Tensor, lengths_B: Tensor | None, state: State) -> tuple[Tensor, State]:
        """Run torch's engine."""
        first = tuple(part_BD[None].contiguous() for part_BD in state)
        start = first if len(first) > 1 else first[0]
        if lengths_B is None:
            y_BLD, last = self.engine(x_BLD, start)
        else:
            packed = pack_padded_sequence(x_BLD, lengths_B.cpu(), batch_first=True, enforce_sorted=False)
            y_packed, last = self.engine(packed, start)
            y_BLD, _ = pad_packed_sequence(y_packed, batch_first=True)
        return y_BLD, tuple(part[0] for part in (last if isinstance(last, tuple) else (last,)))

    def _zeros(self, x_BLD: Tensor) -> State:
        return (x_BLD.new_zeros(x_BLD.shape[0], x_BLD.shape[2]),) * self.states
