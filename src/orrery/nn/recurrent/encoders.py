"""Recurrent encoders: from embedded words to the encoder states that a decoder attends to."""

from abc import ABC, abstractmethod
from typing import Any, TypeAlias

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from orrery.errors import UsageError
from orrery.nn.recurrent.engine import fitting
from orrery.nn.rehearsal import rehearsing
from orrery.nn.segments import PackedSegments
from orrery.nn.spec import ModuleSpec, spec

EncoderStates: TypeAlias = tuple[Float[Tensor, "B S M"], Bool[Tensor, "B S"]]
"""The vectors, and which of them attention may see."""


class Reader(nn.Module, ABC):
    """Shapes: x ``[B, L, D]`` and real ``[B, L]`` to states ``[B, S, M]`` and seen ``[B, S]``; padding on any side."""

    @abstractmethod
    def forward(self, x_BLD: Float[Tensor, "B L D"], real_BL: Bool[Tensor, "B L"]) -> EncoderStates:
        """Return the encoder states of the embedded words, and which places attention may see."""


class BidirectionalGRUEncoder(Reader):
    """``m_j = [forward h_j; backward h_j]``: each word in the light of the whole sentence (Bahdanau et al. 2015, 3.2).

    Shapes: ``[B, L, D]`` to ``[B, L, 2D]``.
    """

    @spec
    class Spec(ModuleSpec):
        """It has no settings."""

        def build(self, width: int) -> "BidirectionalGRUEncoder":
            """Return the reader."""
            return BidirectionalGRUEncoder(width)

        def out_width(self, width: int) -> int:
            """Return both directions' channels."""
            return 2 * width

    def __init__(self, width: int) -> None:
        super().__init__()
        self.engine = nn.GRU(width, width, batch_first=True, bidirectional=True)

    def forward(self, x_BLD: Float[Tensor, "B L D"], real_BL: Bool[Tensor, "B L"]) -> EncoderStates:
        """Return the states of both directions, side by side."""
        segments = PackedSegments.of_real(real_BL)
        y_BLE, _ = _read(self.engine, x_BLD, segments)
        return y_BLE, real_BL


class FinalStateGRU(Reader):
    """``m = tanh(V h_T)``: the whole sentence in one vector (Cho et al. 2014).

    Shapes: ``[B, L, D]`` to ``[B, 1, D]``.
    """

    @spec
    class Spec(ModuleSpec):
        """It has no settings."""

        def build(self, width: int) -> "FinalStateGRU":
            """Return the reader."""
            return FinalStateGRU(width)

    def __init__(self, width: int) -> None:
        super().__init__()
        self.engine, self.summary = nn.GRU(width, width, batch_first=True), nn.Linear(width, width)

    def forward(self, x_BLD: Float[Tensor, "B L D"], real_BL: Bool[Tensor, "B L"]) -> EncoderStates:
        """Read from left to right."""
        segments = PackedSegments.of_real(real_BL)
        _, last_1ND = _read(self.engine, x_BLD, segments)
        h_BD = x_BLD.new_zeros(x_BLD.shape[0], x_BLD.shape[2]).index_copy(0, segments.row_N, last_1ND[0])
        return torch.tanh(self.summary(h_BD))[:, None], real_BL.any(1, keepdim=True)


class StackedLSTMEncoder(Reader):
    """The states of a stack of LSTMs: first h and c of each layer at the end, then the top h of every word.

    Attention sees the words alone; the last states are there for a decoder to begin with.
    Shapes: ``[B, L, D]`` to ``[B, 2 layers + L, D]``.
    """

    @spec
    class Spec(ModuleSpec):
        """The layers."""

        layers: int

        def build(self, width: int) -> "StackedLSTMEncoder":
            """Return the reader.

            Raises:
                UsageError: it has no layer.
            """
            if self.layers < 1:
                raise UsageError(f"an encoder of {self.layers} layers leaves no state", "give it at least one")
            return StackedLSTMEncoder(self, width)

    def __init__(self, spec: Spec, width: int) -> None:
        super().__init__()
        self.engine = nn.LSTM(width, width, num_layers=spec.layers, batch_first=True)

    def forward(self, x_BLD: Float[Tensor, "B L D"], real_BL: Bool[Tensor, "B L"]) -> EncoderStates:
        """Read from left to right."""
        segments = PackedSegments.of_real(real_BL)
        y_BLD, (h, c) = _read(self.engine, x_BLD, segments)
        states_NPD = torch.stack([h, c], 1).flatten(0, 1).transpose(0, 1)
        states_BPD = x_BLD.new_zeros(len(x_BLD), *states_NPD.shape[1:]).index_copy(0, segments.row_N, states_NPD)
        unseen_BP = real_BL.new_zeros(states_BPD.shape[:2])
        return torch.cat([states_BPD, y_BLD], 1), torch.cat([unseen_BP, real_BL], 1)


class ReversedSource(Reader):
    """The last word first: it brings the beginnings of source and target close together (Sutskever et al. 2014, 3.3).

    What is made of each word goes back to the word's own place. Shapes: those of the reader.
    """

    @spec
    class Spec(ModuleSpec):
        """The reader."""

        reader: ModuleSpec

        def build(self, width: int) -> "ReversedSource":
            """Return the reader, turned around."""
            return ReversedSource(self, width)

        def out_width(self, width: int) -> int:
            """Return the reader's."""
            return self.reader.out_width(width)

    def __init__(self, spec: Spec, width: int) -> None:
        super().__init__()
        self.reader = spec.reader.build(width)

    def forward(self, x_BLD: Float[Tensor, "B L D"], real_BL: Bool[Tensor, "B L"]) -> EncoderStates:
        """Read from right to left."""
        encoder_states, seen = self.reader(x_BLD.flip(1), real_BL.flip(1))
        extra = encoder_states.shape[1] - x_BLD.shape[1]
        if extra < 0:  # a summary has no places
            return encoder_states, seen
        return tuple(torch.cat([part[:, :extra], part[:, extra:].flip(1)], 1) for part in (encoder_states, seen))  # type: ignore[return-value]


def _read(engine: nn.Module, x_BLD: Tensor, segments: PackedSegments) -> tuple[Tensor, Any]:
    """Let a recurrent engine read every row's tokens; return its outputs in their places, and its last states.

    A rehearsal has no lengths to pack by, and reads whole rows.
    """
    with fitting(engine, x_BLD):
        if rehearsing():
            y_BLE, last = engine(x_BLD)
            return y_BLE, last
        y_packed, last = engine(segments.pack(x_BLD))
    return segments.unpack(y_packed.data), last
