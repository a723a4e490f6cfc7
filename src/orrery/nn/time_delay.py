"""The time-delay layer, as a branch of a block: what stands at the last few places, side by side."""

from collections.abc import Mapping

import torch
from jaxtyping import Float
from torch import Tensor, nn

from orrery.errors import UsageError
from orrery.nn.activations import activation
from orrery.nn.context import Context
from orrery.nn.recurrent.segments import PackedSegments
from orrery.nn.spec import ModuleSpec, spec


class TimeDelay(nn.Module):
    """``sum_i act_i(b_i + H_i [x_t; x_{t-1}; ...; x_{t-n+1}])``, with zeros before the beginning (Waibel et al. 1989).

    A call leaves the last ``n - 1`` inputs to the next one, as a recurrence leaves its state: so the memory has one
    size however long the row grows. Padding is passed over, and a document begins from zeros.
    Shapes: ``[B, L, D]`` unchanged; the window ``[B, L, n D]``.
    """

    role: str = ""

    @spec
    class Spec(ModuleSpec):
        """``length`` places, the token's own among them; activations by the names of their matrices; the mask."""

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

    def forward(self, x_BLD: Float[Tensor, "B L D"], ctx: Context) -> Float[Tensor, "B L D"]:
        """Mix each token with those before it."""
        assert ctx.layer is not None
        segments = PackedSegments.of(ctx.masks[self.mask], *x_BLD.shape[:2])
        (before_BKD,) = ctx.layer.resume(self.mask, self.role) or (
            x_BLD.new_zeros(len(x_BLD), self.kept, x_BLD.shape[2]),
        )
        if segments is None:
            seen_BTD = torch.cat([before_BKD, x_BLD], 1)
            y_BLD, after_BKD = self._mix(seen_BTD), seen_BTD[:, x_BLD.shape[1] :]
        else:
            seen_NTD = torch.cat([before_BKD[segments.row_N], segments.split(x_BLD)], 1)
            y_BLD = segments.join(self._mix(seen_NTD))
            last_NK = segments.length_N[:, None] + torch.arange(self.kept, device=x_BLD.device)
            ended_NKD = seen_NTD.gather(1, last_NK[..., None].expand(-1, -1, x_BLD.shape[2]))
            after_BKD = before_BKD.index_copy(0, segments.row_N, ended_NKD)
        ctx.layer.leave(self.mask, self.role, (after_BKD,))
        return ctx.tap(self, "hidden", y_BLD)

    def _mix(self, seen_BTD: Float[Tensor, "B T D"]) -> Float[Tensor, "B L D"]:
        """Put the newest first, as Bengio et al. do, and go through the matrices."""
        tokens = seen_BTD.shape[1] - self.kept
        places = [seen_BTD[:, self.kept - ago : self.kept - ago + tokens] for ago in range(self.kept + 1)]
        window_BLE = torch.cat(places, -1)
        mixed = [self.activations[name](matrix(window_BLE)) for name, matrix in self.matrices.items()]
        return torch.stack(mixed).sum(0)
