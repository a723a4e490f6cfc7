"""A mixer that reads from the last token to the first: the other half of an encoder whose mixers keep a state."""

from dataclasses import replace
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from orrery.errors import UsageError
from orrery.nn.cache.contract import Cache
from orrery.nn.context import Context
from orrery.nn.mixer import StatefulMixer
from orrery.nn.segments import PackedSegments
from orrery.nn.spec import ModuleSpec, spec


class Backward(nn.Module):
    """``turn(mixer(turn(x)))``, where ``turn`` puts the tokens of each document in the opposite order.

    In a sum with a mixer that reads forward each token sees the whole text at a cost that is linear in its length
    (BiMamba: Schiff et al. 2024, section 3.1; Schuster and Paliwal 1997 for recurrent networks). Padding stays where it
    is. Under a recorder the result is shown, at the tokens' own places; what is inside the steps is not.
    Shapes: ``[B, L, D]`` to ``[B, L, D]``.
    """

    role: str = ""

    @spec
    class Spec(ModuleSpec):
        """The mixer that is turned around."""

        keeps_state: ClassVar[bool] = True

        mixer: ModuleSpec
        mask: str = "past"

        def build(self, width: int) -> "Backward":
            """Return the mixer, turned around.

            Raises:
                UsageError: what is to be turned keeps no state, or names another mask.
            """
            mixer = self.mixer.build(width)
            if not isinstance(mixer, StatefulMixer) or mixer.mask != self.mask:
                message = f"{self.mixer.kind} cannot read backwards under the mask {self.mask!r}"
                raise UsageError(message, "give a mixer with a state, under the same mask")
            return Backward(self, mixer)

    def __init__(self, spec: Spec, mixer: StatefulMixer) -> None:
        super().__init__()
        self.mask, self.mixer = spec.mask, mixer

    def forward(self, x_BLD: Float[Tensor, "B L D"], ctx: Context) -> Float[Tensor, "B L D"]:
        """Read every document from its end.

        Raises:
            UsageError: the call goes on from earlier tokens, but what a token needs here comes after it.
        """
        assert ctx.layer is not None
        assert ctx.segments is not None
        refuse_session(ctx.layer.cache)
        segments = ctx.segments[self.mask]
        y_BLD = self.mixer(turned(x_BLD, segments), replace(ctx, taps=None))
        return ctx.tap(self, "state", turned(y_BLD, segments))


def refuse_session(cache: Cache) -> None:
    """Refuse a call that goes on from another."""
    if cache.remembers:
        raise UsageError("a mixer that reads backwards cannot go on from what came before", "use it in an encoder")


def turned(x_BLD: Float[Tensor, "B L D"], segments: PackedSegments | None) -> Float[Tensor, "B L D"]:
    """Return the tokens of each segment in the opposite order; what is in no segment stays."""
    if segments is None:
        return x_BLD.flip(1)
    begin_N, slot_M, at_M = segments.in_order
    token_M = torch.empty_like(at_M).scatter_(0, slot_M, at_M)
    # In a segment that takes the slots from b to b + n - 1, slot s changes places with slot 2 b + n - 1 - s.
    last_N = 2 * begin_N + segments.length_N - 1
    other_M = token_M[last_N[segments.segment_BL.flatten()[at_M]] - slot_M]
    x_PD = x_BLD.flatten(0, 1)
    return x_PD.index_copy(0, at_M, x_PD[other_M]).view_as(x_BLD)
