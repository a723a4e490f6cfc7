"""Multi-head attention: one class for MHA, MQA and GQA, for self- and cross-attention."""

from collections.abc import Callable
from functools import partial
from typing import ClassVar, TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor, nn

from orrery.errors import UsageError
from orrery.nn.attention.operands import KeysValues, Operands
from orrery.nn.attention.sources import CrossSource, SelfSource, Source
from orrery.nn.context import Context
from orrery.nn.parting import Grain, Parted
from orrery.nn.residual import Identity
from orrery.nn.spec import ModuleSpec, Value, spec

Tap: TypeAlias = Callable[[str, Tensor], Tensor]
"""What sees a value by its name, and returns it or what stands in for it."""


@spec
class Biases(Value):
    """Which of the four projections have a bias."""

    q: bool = False
    k: bool = False
    v: bool = False
    out: bool = False


@spec
class ScoreSettings(Value):
    """Numbers of the kernel: ``scale`` on the scores (``None``: ``1 / sqrt(C)``), their cap, dropout on the pattern."""

    scale: float | None = None
    dropout: float = 0.0
    cap: float | None = None


class NoSinks(nn.Module):
    """No sink: a pattern sums to one. Shapes: none."""

    parting: ClassVar = Grain.NUMBER

    @spec
    class Spec(ModuleSpec):
        """It has no settings."""

        def build(self, heads: int) -> "NoSinks":
            """Return the empty slot."""
            return NoSinks()

    def forward(self) -> None:
        """Return no scores of sinks."""
        return None


class Sinks(nn.Module):
    """A learned score that each head gives to nothing (gpt-oss; Xiao et al. 2023). Shapes: ``[H]``."""

    parting: ClassVar = Grain.HEAD

    @spec
    class Spec(ModuleSpec):
        """It has no settings."""

        def build(self, heads: int) -> "Sinks":
            """Return one sink a head."""
            return Sinks(heads)

    def __init__(self, heads: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(heads))

    def forward(self) -> Float[Tensor, "H"]:
        """Return the scores."""
        return self.weight


class NoGate(nn.Module):
    """``z``: what the heads have mixed reaches the output matrix whole (see ``output_gate``). Shapes: unchanged."""

    parting: ClassVar = Grain.NUMBER

    def forward(
        self, mixed_BHLC: Float[Tensor, "B H L C"], x_BLD: Float[Tensor, "B L D"], tap: Tap
    ) -> Float[Tensor, "B H L C"]:
        """Return what was mixed."""
        return mixed_BHLC


class MultiHeadAttention(nn.Module):
    """``concat(head_1, ..., head_H) W_out``, ``head = softmax(q k^T / sqrt(C)) v`` (Vaswani et al. 2017, 3.2.2).

    ``kv_heads`` is a number, not a path: equal to ``heads`` it is MHA, one is MQA (Shazeer 2019), between is GQA
    (Ainslie et al. 2023). q, k and v are always separate; fused layouts are facts of a checkpoint.
    The product with ``W_out`` equals the sum over heads of ``W_out_h head_h``, the form of the course's first deck.

    Shapes: ``[B, L, D]`` to ``[B, L, D]``, or as wide as the output matrix; inside q ``[B, H, L, C]``, k and v
    ``[B, K, S, C]``.
    """

    parting: ClassVar = Parted(("q", "k", "v"), ("out",), ("sinks.weight",), "head_width", Grain.HEAD)
    role: str = ""

    @spec
    class Spec(ModuleSpec):
        """Heads, and the names of the stack's positions and mask.

        ``source`` says where keys and values come from; ``qk_norm`` is applied to q and to k, all heads in a row;
        ``sinks`` adds a score that goes to nothing.
        """

        heads: int
        kv_heads: int
        head_width: int
        biases: Biases = Biases()
        scoring: ScoreSettings = ScoreSettings()
        qk_norm: ModuleSpec = Identity.Spec()
        sinks: ModuleSpec = NoSinks.Spec()
        source: ModuleSpec = SelfSource.Spec()
        position: str = "none"
        mask: str = "causal"

        @property
        def cached(self) -> int:
            """Return the numbers that a token leaves in the cache: its keys and values, unless they are another's."""
            return 2 * self.kv_heads * self.head_width if isinstance(self.source, SelfSource.Spec) else 0

        def build(self, width: int) -> "MultiHeadAttention":
            """Return the attention.

            Raises:
                UsageError: ``kv_heads`` does not divide ``heads``, or positions of this stream for another's keys.
            """
            if isinstance(self.source, CrossSource.Spec) and self.position != "none":
                raise UsageError(
                    f"cross-attention asks for the position {self.position!r}, that of the tokens which look",
                    'leave it at "none": the keys are those of the source',
                )
            if self.kv_heads < 1 or self.heads % self.kv_heads:
                raise UsageError(
                    f"{self.kv_heads} key-value heads cannot be shared by {self.heads} heads",
                    "choose a number of key-value heads that divides the number of heads",
                )
            return MultiHeadAttention(self, width)

    def __init__(self, spec: Spec, width: int) -> None:
        super().__init__()
        queries, keys = spec.heads * spec.head_width, spec.kv_heads * spec.head_width
        read = (spec.source.width if isinstance(spec.source, CrossSource.Spec) else None) or width
        self.q = nn.Linear(width, queries, bias=spec.biases.q)
        self.k = nn.Linear(read, keys, bias=spec.biases.k)
        self.v = nn.Linear(read, keys, bias=spec.biases.v)
        self.out = nn.Linear(queries, width, bias=spec.biases.out)
        self.q_norm, self.k_norm = spec.qk_norm.build(queries), spec.qk_norm.build(keys)
        self.sinks = spec.sinks.build(spec.heads)
        self.gate: nn.Module = NoGate()
        source = spec.source.build(keys)
        assert isinstance(source, Source)
        self.source = source
        self.position, self.mask, self.head_width = spec.position, spec.mask, spec.head_width
        self.scale = spec.head_width**-0.5 if spec.scoring.scale is None else spec.scoring.scale
        self.dropout, self.cap = spec.scoring.dropout, spec.scoring.cap

    def forward(self, x_BLD: Float[Tensor, "B L D"], ctx: Context) -> Float[Tensor, "B L E"]:
        """Let every token read what it may see; as many channels come out as the output matrix has."""
        position, read = ctx.positions[self.position], self.source.read(x_BLD, ctx, self.mask)
        q_BHLC = self.split(self.q_norm(self.q(x_BLD)))

        def project() -> tuple[Tensor, Tensor]:
            k_BKSC = self.split(self.k_norm(self.k(read.stream_BSD)))
            v_BKSC = self.split(self.source.values(self.v(read.stream_BSD)))
            return position.rotate(k_BKSC), v_BKSC

        kv = read.keep(project)
        q_BHLC = ctx.tap(self, "q", position.of_queries.rotate(q_BHLC))
        kv = KeysValues(ctx.tap(self, "k", kv.k_BKSC), ctx.tap(self, "v", kv.v_BKSE))
        operands = Operands(
            mask=read.mask,
            scale=self.scale,
            bias_BHLS=position.bias(self.mask),
            dropout=self.dropout * self.training,
            cap=self.cap,
            sinks_H=self.sinks(),
            tap=partial(ctx.tap, self),
        )
        mixed_BHLC = ctx.tap(self, "mixed", ctx.kernel(q_BHLC, kv, operands))
        return self.out(self.gate(mixed_BHLC, x_BLD, partial(ctx.tap, self)).transpose(1, 2).flatten(2))

    def split(self, x_BLE: Float[Tensor, "B L E"]) -> Float[Tensor, "B H L C"]:
        """Cut the channels into heads."""
        return x_BLE.unflatten(-1, (-1, self.head_width)).transpose(1, 2)
