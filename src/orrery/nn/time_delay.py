"""The time-delay layer, as a branch of a block: what stands at the last few places, side by side."""

from collections.abc import Callable, Mapping
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from orrery.errors import UsageError
from orrery.nn.activations import activation
from orrery.nn.cache.contract import State
from orrery.nn.mixer import Form, Show, StatefulMixer
from orrery.nn.segments import PackedSegments
from orrery.nn.spec import ModuleSpec, spec


class TimeDelay(StatefulMixer):
    """``sum_i act_i(b_i + H_i [x_t; x_{t-1}; ...; x_{t-n+1}])``, with zeros before the beginning (Waibel et al. 1989).

    A call leaves the last ``n - 1`` inputs to the next one, as a recurrence leaves its state: so the memory has one
    size however long the row grows. Padding is passed over, and a document begins from zeros.
    Shapes: ``[B, L, D]`` unchanged; the window ``[B, L, n D]``.
    """

    output: ClassVar[str] = "hidden"
    only_weights: ClassVar[bool] = True

    @spec
    class Spec(ModuleSpec):
        """``length`` places, the token's own among them; activations by the names of their matrices; the mask."""

        keeps_state: ClassVar[bool] = True

        length: int
        activations: Mapping[str, str]
        mask: str = "past"

        def build(self, width: int) -> "TimeDelay":
            """Return the layer.

            Raises:
                UsageError: a window of no place.
            """
            if self.length < 1:
                raise UsageError(f"a window of {self.length} tokens shows nothing", "let it see at least one")
            return TimeDelay(self, width)

    def __init__(self, spec: Spec, width: int) -> None:
        super().__init__()
        self.matrices = nn.ModuleDict({name: nn.Linear(spec.length * width, width) for name in spec.activations})
        self.activations = {name: activation(kind) for name, kind in spec.activations.items()}
        self.mask, self.kept = spec.mask, spec.length - 1

    @property
    def forms(self) -> Mapping[str, Form]:
        """All windows at once, beside the steps."""
        return {"parallel": self.windows}

    def begin(self, x_BLD: Float[Tensor, "B L D"]) -> State:
        """Return zeros: there is nothing before the first token."""
        return (x_BLD.new_zeros(len(x_BLD), self.kept, x_BLD.shape[2]),)

    def step(self, x_BD: Float[Tensor, "B D"], state: State, show: Show) -> tuple[Float[Tensor, "B D"], State]:
        """Mix one token with those before it, and forget the oldest."""
        seen_BTD = torch.cat([state[0], x_BD[:, None]], 1)
        return self._mix(lambda ago: seen_BTD[:, self.kept - ago]), (seen_BTD[:, 1:],)

    def windows(self, x_BLD: Tensor, segments: PackedSegments | None, state: State) -> tuple[Tensor, State]:
        """Mix each token with those before it."""
        if segments is not None:
            return self._windows_of(segments, x_BLD, *state)
        tokens = x_BLD.shape[1]
        seen_BTD = torch.cat([*state, x_BLD], 1)
        y_BLD = self._mix(lambda ago: seen_BTD[:, self.kept - ago : self.kept - ago + tokens])
        return y_BLD, (seen_BTD[:, tokens:],)

    def _windows_of(self, segments: PackedSegments, x_BLD: Tensor, before_NKD: Tensor) -> tuple[Tensor, State]:
        """Lay the segments one behind the other, each after what was before it."""
        begin_N, slot_M, at_M = segments.in_order
        numbers_N, ago_K = (torch.arange(size, device=at_M.device) for size in (len(begin_N), self.kept))
        begin_N = begin_N + self.kept * numbers_N
        slot_M = slot_M + self.kept * (segments.segment_BL.flatten()[at_M] + 1)
        x_PD = x_BLD.flatten(0, 1)
        seen_SD = x_PD.new_zeros(len(at_M) + self.kept * len(begin_N), x_PD.shape[1])
        seen_SD = seen_SD.index_copy(0, (begin_N[:, None] + ago_K).flatten(), before_NKD.flatten(0, 1))
        seen_SD = seen_SD.index_copy(0, slot_M, x_PD[at_M])
        y_PD = torch.zeros_like(x_PD).index_copy(0, at_M, self._mix(lambda ago: seen_SD[slot_M - ago]))
        return y_PD.view_as(x_BLD), (seen_SD[(begin_N + segments.length_N)[:, None] + ago_K],)

    def _mix(self, at: Callable[[int], Tensor]) -> Tensor:
        """Put the newest first, as Bengio et al. do, and go through the matrices."""
        window = torch.cat([at(ago) for ago in range(self.kept + 1)], -1)
        mixed = [self.activations[name](matrix(window)) for name, matrix in self.matrices.items()]
        return torch.stack(mixed).sum(0)

    def watch(self, x_BLD: Tensor, segments: PackedSegments | None, before: State, show: Show) -> None:
        """Show nothing more: there are no gates."""
