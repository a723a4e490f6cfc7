"""Differential attention: the pattern of one head less that of another, over values that both share."""

from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor, nn

from orrery.errors import UsageError
from orrery.nn.attention.latent import HeadWidths
from orrery.nn.attention.multihead import Biases, ScoreSettings
from orrery.nn.attention.operands import KeysValues, Operands
from orrery.nn.context import Context
from orrery.nn.initialisation import Draw
from orrery.nn.spec import ModuleSpec, Value, spec


@spec
class Contrast(Value):
    """How much of the second pattern is taken away: ``initial`` at first, and the deviation of what moves it."""

    initial: float
    deviation: float = 0.1


class DifferentialAttention(nn.Module):
    """``(softmax(q_1 k_1^T / sqrt(C)) - l softmax(q_2 k_2^T / sqrt(C))) v``, for each pair of heads (Ye et al. 2024).

    ``l = exp(a_1 . b_1) - exp(a_2 . b_2) + initial``, one number a layer, learned; each pair goes through ``norm``
    before ``W_out``. Head h is paired with head ``h + H/2``, and the pair reads the values of key-value heads g and
    ``g + K/2`` side by side, 2 C channels. Differs from the paper: there the heads of a pair are neighbours.

    Shapes: ``[B, L, D]`` to ``[B, L, D]``; inside q ``[B, H, L, C]``, k ``[B, K, S, C]``, v ``[B, K, S, 2 C]``, the
    difference ``[B, L, H C]``; the cache holds values of C channels.
    """

    role: str = ""

    @spec
    class Spec(ModuleSpec):
        """Heads, the contrast of the layer, and ``norm``, which sees the differences of all pairs in a row."""

        heads: int
        kv_heads: int
        head_width: int
        contrast: Contrast
        norm: ModuleSpec
        biases: Biases = Biases()
        scoring: ScoreSettings = ScoreSettings()
        position: str = "none"
        mask: str = "causal"

        @property
        def widths(self) -> HeadWidths:
            """Return the channels of a head: its values are those of two."""
            return HeadWidths(plain=0, rotated=self.head_width, value=2 * self.head_width)

        @property
        def cached(self) -> int:
            """Return the numbers that a token leaves in the cache: its keys and values."""
            return 2 * self.kv_heads * self.head_width

        def build(self, width: int) -> "DifferentialAttention":
            """Return the attention.

            Raises:
                UsageError: the key-value heads make no pairs, or do not divide the heads.
            """
            if self.kv_heads < 2 or self.kv_heads % 2 or self.heads % self.kv_heads:
                raise UsageError(
                    f"{self.heads} heads with {self.kv_heads} key-value heads make no pairs that share values",
                    "choose an even number of key-value heads that divides the number of heads",
                )
            return DifferentialAttention(self, width)

    def __init__(self, spec: Spec, width: int) -> None:
        super().__init__()
        queries, keys = spec.heads * spec.head_width, spec.kv_heads * spec.head_width
        self.q = nn.Linear(width, queries, bias=spec.biases.q)
        self.k = nn.Linear(width, keys, bias=spec.biases.k)
        self.v = nn.Linear(width, keys, bias=spec.biases.v)
        self.out = nn.Linear(queries, width, bias=spec.biases.out)
        self.a, self.b = (
            nn.ParameterList(nn.Parameter(torch.zeros(spec.head_width)) for _ in range(2)) for _ in range(2)
        )
        self.norm = spec.norm.build(queries)
        self.contrast, self.head_width = spec.contrast, spec.head_width
        self.position, self.mask = spec.position, spec.mask
        self.scale = spec.head_width**-0.5 if spec.scoring.scale is None else spec.scoring.scale
        self.dropout, self.cap = spec.scoring.dropout, spec.scoring.cap

    def initialise(self, draw: Draw) -> None:
        """Draw matrices as usual, and what moves the contrast around zero."""
        for name in ("q", "k", "v", "out"):
            draw.usual(self.get_submodule(name), name)
        for parameter in (*self.a, *self.b):
            draw.normal(parameter, self.contrast.deviation)

    def taken(self) -> Float[Tensor, ""]:
        """Return how much of the second pattern is taken away."""
        first, second = ((a_C * b_C).sum().exp() for a_C, b_C in zip(self.a, self.b, strict=True))
        return first - second + self.contrast.initial

    def forward(self, x_BLD: Float[Tensor, "B L D"], ctx: Context) -> Float[Tensor, "B L D"]:
        """Let every token read what it may see, twice, and take one from the other."""
        assert ctx.layer is not None
        position = ctx.positions[self.position]
        k_BKLC, v_BKLC = position.rotate(self.split(self.k(x_BLD))), self.split(self.v(x_BLD))
        k_BKSC, v_BKSC = ctx.layer.extend(self.mask, k_BKLC, v_BKLC)
        q_BHLC = ctx.tap(self, "q", position.of_queries.rotate(self.split(self.q(x_BLD))))
        kv = KeysValues(ctx.tap(self, "k", k_BKSC), ctx.tap(self, "v", shared_values(v_BKSC)))
        operands = Operands(
            mask=ctx.masks[self.mask],
            scale=self.scale,
            bias_BHLS=position.bias(self.mask),
            dropout=self.dropout * self.training,
            cap=self.cap,
            tap=partial(ctx.tap, self),
        )
        mixed_BHLE = ctx.tap(self, "mixed", ctx.kernel(q_BHLC, kv, operands))
        return self.out(self.norm(ctx.tap(self, "difference", self.difference(mixed_BHLE))))

    def difference(self, mixed_BHLE: Float[Tensor, "B H L E"]) -> Float[Tensor, "B L F"]:
        """Return what the first head of each pair mixes, less its share of the second's, all pairs in a row."""
        first_BGLE, second_BGLE = mixed_BHLE.chunk(2, dim=1)
        difference_BGLE = first_BGLE - self.taken().to(mixed_BHLE.dtype) * second_BGLE
        return difference_BGLE.transpose(1, 2).flatten(2)

    def split(self, x_BLE: Float[Tensor, "B L E"]) -> Float[Tensor, "B H L C"]:
        """Cut the channels into heads."""
        return x_BLE.unflatten(-1, (-1, self.head_width)).transpose(1, 2)


def shared_values(v_BKSC: Float[Tensor, "B K S C"]) -> Float[Tensor, "B K S E"]:
    """Return for every key-value head the values that its pair reads: those of g and ``g + K/2`` side by side."""
    return torch.cat(v_BKSC.chunk(2, dim=1), dim=-1).repeat(1, 2, 1, 1)
