"""Disentangled attention: what a token is and how far it is are compared apart (DeBERTa)."""

from collections.abc import Mapping
from functools import partial
from typing import ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from orrery.nn.attention.multihead import Biases, ScoreSettings
from orrery.nn.attention.operands import KeysValues, Operands
from orrery.nn.context import Context
from orrery.nn.positions.relative_embeddings import related
from orrery.nn.residual import Identity
from orrery.nn.spec import ModuleSpec, spec


class Own(nn.Module):
    """``W P + b``: positions have a projection of their own. Shapes: ``[R, D]`` to ``[R, H C]``."""

    @spec
    class Spec(ModuleSpec):
        """``width`` channels come out, all heads in a row."""

        width: int
        bias: bool = True

        def build(self, width: int) -> "Own":
            """Return the projection."""
            return Own(width, self.width, bias=self.bias)

    def __init__(self, width: int, out: int, *, bias: bool) -> None:
        super().__init__()
        self.linear = nn.Linear(width, out, bias=bias)

    def forward(self, table_RD: Float[Tensor, "R D"], content: nn.Module) -> Float[Tensor, "R E"]:
        """Project the table."""
        return self.linear(table_RD)


class Shared(nn.Module):
    """``content(P)``: positions go through the projection of the contents (v2). Shapes: as ``Own``."""

    @spec
    class Spec(ModuleSpec):
        """It has no settings."""

        def build(self, width: int) -> "Shared":
            """Return the slot; it has no parameters."""
            return Shared()

    def forward(self, table_RD: Float[Tensor, "R D"], content: nn.Module) -> Float[Tensor, "R E"]:
        """Project the table as the contents are."""
        return content(table_RD)


class ContentToPosition(nn.Module):
    """``q_i . k(P[row(i, j)])``: the query asks how far a key is (He et al. 2021, equation 2, second term).

    Shapes: q ``[B, H, L, C]``, rows ``[B, L, S]`` to ``[B, H, L, S]``.
    """

    @spec
    class Spec(ModuleSpec):
        """How positions become keys, and what happens to queries before (a bias of their own in Transformer-XL)."""

        projection: ModuleSpec
        query: ModuleSpec = Identity.Spec()

        def build(self, width: int) -> "ContentToPosition":
            """Return the module of this term."""
            return ContentToPosition(self, width)

    def __init__(self, spec: Spec, width: int) -> None:
        super().__init__()
        self.projection, self.query = spec.projection.build(width), spec.query.build(width)

    def forward(
        self,
        attention: "DisentangledAttention",
        q_BHLC: Float[Tensor, "B H L C"],
        k_BHSC: Float[Tensor, "B H S C"],
        table_RD: Float[Tensor, "R D"],
        rows_BLS: Int[Tensor, "#B L S"],
    ) -> Float[Tensor, "B H L S"]:
        """Meet the keys of all distances, then pick the one of each pair."""
        keys_1HRC = attention.split(self.projection(table_RD, attention.k)[None])
        return _picked(self.query(q_BHLC) @ keys_1HRC.mT, rows_BLS)


class PositionToContent(nn.Module):
    """``q(P[row(i, j)]) . k_j``: the distance asks what a key is (He et al. 2021, equation 2, third term).

    Differs from the paper: it writes ``delta(j, i)`` here, the authors' code takes the row of ``i - j`` as in the
    second term. Both say the same with the table turned round. Shapes: as ``ContentToPosition``.
    """

    @spec
    class Spec(ModuleSpec):
        """How positions become queries."""

        projection: ModuleSpec

        def build(self, width: int) -> "PositionToContent":
            """Return the module of this term."""
            return PositionToContent(self.projection.build(width))

    def __init__(self, projection: nn.Module) -> None:
        super().__init__()
        self.projection = projection

    def forward(
        self,
        attention: "DisentangledAttention",
        q_BHLC: Float[Tensor, "B H L C"],
        k_BHSC: Float[Tensor, "B H S C"],
        table_RD: Float[Tensor, "R D"],
        rows_BLS: Int[Tensor, "#B L S"],
    ) -> Float[Tensor, "B H L S"]:
        """Meet the queries of all distances, then pick the one of each pair."""
        queries_1HRC = attention.split(self.projection(table_RD, attention.q)[None])
        return _picked(k_BHSC @ queries_1HRC.mT, rows_BLS.mT).mT


class DisentangledAttention(nn.Module):
    """``softmax((q_i . k_j + terms_ij) / sqrt((1 + T) C)) v`` with T terms (He et al. 2021, section 3.1, equation 4).

    The terms compare content with position: ``ContentToPosition``, ``PositionToContent``, or fewer of them. They reach
    the kernel as a bias, so that every kernel with biases can compute them.
    Shapes: ``[B, L, D]`` to ``[B, L, D]``; inside q ``[B, H, L, C]``, the table ``[R, D]``.
    """

    role: str = ""

    @spec
    class Spec(ModuleSpec):
        """Heads and terms by name; ``table`` is what happens to the embeddings of distances before (dropout)."""

        learns_bias: ClassVar[bool] = True

        heads: int
        head_width: int
        terms: Mapping[str, ModuleSpec]
        biases: Biases = Biases()
        scoring: ScoreSettings = ScoreSettings()
        table: ModuleSpec = Identity.Spec()
        position: str = "relative"
        mask: str = "full"

        def build(self, width: int) -> "DisentangledAttention":
            """Return the attention."""
            return DisentangledAttention(self, width)

    def __init__(self, spec: Spec, width: int) -> None:
        super().__init__()
        channels, biases, scoring = spec.heads * spec.head_width, spec.biases, spec.scoring
        self.q = nn.Linear(width, channels, bias=biases.q)
        self.k = nn.Linear(width, channels, bias=biases.k)
        self.v = nn.Linear(width, channels, bias=biases.v)
        self.out = nn.Linear(channels, width, bias=biases.out)
        self.terms = nn.ModuleDict({name: term.build(width) for name, term in spec.terms.items()})
        self.table = spec.table.build(width)
        self.position, self.mask, self.head_width = spec.position, spec.mask, spec.head_width
        products = (1 + len(spec.terms)) * spec.head_width
        self.scale = products**-0.5 if scoring.scale is None else scoring.scale
        self.dropout, self.cap = scoring.dropout, scoring.cap

    def forward(self, x_BLD: Float[Tensor, "B L D"], ctx: Context) -> Float[Tensor, "B L D"]:
        """Let every token read what it may see."""
        assert ctx.layer is not None
        position = related(ctx.positions, self.position)
        table_RD, rows_BLS = self.table(position.table_RD), position.rows[self.mask]
        q_BHLC = ctx.tap(self, "q", self.split(self.q(x_BLD)))
        kv = ctx.layer.extend(self.mask, self.split(self.k(x_BLD)), self.split(self.v(x_BLD)))
        kv = KeysValues(ctx.tap(self, "k", kv.k_BKSC), ctx.tap(self, "v", kv.v_BKSE))
        bias_BHLS = q_BHLC.new_zeros(1, *q_BHLC.shape[1:3], kv.k_BKSC.shape[2])
        for name, term in self.terms.items():
            bias_BHLS = bias_BHLS + ctx.tap(self, name, term(self, q_BHLC, kv.k_BKSC, table_RD, rows_BLS))
        operands = Operands(
            mask=ctx.masks[self.mask],
            scale=self.scale,
            bias_BHLS=self.scale * bias_BHLS,
            dropout=self.dropout * self.training,
            cap=self.cap,
            tap=partial(ctx.tap, self),
        )
        mixed_BHLC = ctx.tap(self, "mixed", ctx.kernel(q_BHLC, kv, operands))
        return self.out(mixed_BHLC.transpose(1, 2).flatten(2))

    def split(self, x_BLE: Float[Tensor, "B L E"]) -> Float[Tensor, "B H L C"]:
        """Cut the channels into heads."""
        return x_BLE.unflatten(-1, (-1, self.head_width)).transpose(1, 2)


def _picked(scores_BHLR: Tensor, rows_BLS: Tensor) -> Tensor:
    """Return, for every pair, the score of its row."""
    B, H = scores_BHLR.shape[:2]
    return torch.gather(scores_BHLR, -1, rows_BLS[:, None].expand(B, H, -1, -1))
