"""A short convolution between two gates: all that most layers of LFM2 remember."""

from collections.abc import Mapping
from typing import ClassVar

from jaxtyping import Bool, Float
from torch import Tensor, nn

from orrery.nn.cache.contract import State
from orrery.nn.initialisation import Draw
from orrery.nn.linear.short_convolution import ShortConvolution
from orrery.nn.mixer import Form, Show, StatefulMixer, unseen
from orrery.nn.spec import ModuleSpec, spec


class GatedConvolution(StatefulMixer):
    """``y_t = W_out (C_t * conv(B * x)_t)``, where B, C and x are linear in the input (LFM2, Liquid AI 2025).

    Its state is the last ``length - 1`` gated inputs. Shapes: ``[B, L, D]`` to ``[B, L, D]``.
    """

    @spec
    class Spec(ModuleSpec):
        """The places of the convolution; ``bias`` is that of all linear maps and of the convolution."""

        keeps_state: ClassVar[bool] = True

        length: int = 3
        bias: bool = False
        mask: str = "past"

        def build(self, width: int) -> "GatedConvolution":
            """Return the mixer."""
            return GatedConvolution(self, width)

    def __init__(self, spec: Spec, width: int) -> None:
        super().__init__()
        self.mask = spec.mask
        self.write, self.read, self.x, self.out = (nn.Linear(width, width, bias=spec.bias) for _ in range(4))
        self.convolution = ShortConvolution(width, spec.length, bias=spec.bias)

    def initialise(self, draw: Draw) -> None:
        """Draw the matrices as usual, the convolution as torch does."""
        for name, part in self.named_modules():
            draw.usual(part, name)
        self.convolution.initialise(draw)

    @property
    def forms(self) -> Mapping[str, Form]:
        """All tokens at once, beside the steps."""
        return {"parallel": self.over_rows(self.parallel)}

    def begin(self, x_BLD: Float[Tensor, "B L D"]) -> State:
        """Return no inputs before the first."""
        return (self.convolution.begin(x_BLD),)

    def step(self, x_BD: Float[Tensor, "B D"], state: State, show: Show) -> tuple[Float[Tensor, "B D"], State]:
        """Take one token a row."""
        mixed_BD, after = self.convolution.step(self._written(x_BD, show), *state)
        return self._read(x_BD, mixed_BD, show), (after,)

    def parallel(
        self, x_NTD: Float[Tensor, "N T D"], real_NT: Bool[Tensor, "N T"] | None, state: State
    ) -> tuple[Float[Tensor, "N T D"], State]:
        """Take all tokens of rows."""
        written_NTD = self._written(x_NTD, unseen)
        if real_NT is not None:
            written_NTD = written_NTD.masked_fill(~real_NT[..., None], 0)
        mixed_NTD, after = self.convolution.parallel(written_NTD, real_NT, *state)
        return self._read(x_NTD, mixed_NTD, unseen), (after,)

    def _written(self, x: Tensor, show: Show) -> Tensor:
        return show("write_gate", self.write(x)) * self.x(x)

    def _read(self, x: Tensor, mixed: Tensor, show: Show) -> Tensor:
        gated: Tensor = show("output_gate", self.read(x)) * mixed
        return self.out(gated)
