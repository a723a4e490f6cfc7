"""Where an attention's keys and values come from, and where they are stored."""

from typing import TYPE_CHECKING

from torch import Tensor, nn

from orrery.nn.context import Context
from orrery.nn.masks import BoundMask
from orrery.nn.positions.scheme import BoundPosition
from orrery.nn.residual import Identity
from orrery.nn.spec import ModuleSpec, spec

if TYPE_CHECKING:
    from orrery.nn.attention.multihead import MultiHeadAttention


class SelfSource(nn.Module):
    """SelfSource-attention: keys and values of the same tokens, appended to this layer's cache.

    Shapes: x ``[B, L, D]`` to q ``[B, H, L, C]``, k and v ``[B, K, S, C]``.
    """

    @spec
    class Spec(ModuleSpec):
        """``values`` is applied to the values, all heads in a row, as ``qk_norm`` is to queries and keys."""

        values: ModuleSpec = Identity.Spec()

        def build(self, width: int) -> "SelfSource":
            """Return the source of keys and values of ``width`` channels."""
            return SelfSource(self, width)

    def __init__(self, spec: Spec, width: int) -> None:
        super().__init__()
        self.values = spec.values.build(width)

    def forward(
        self,
        attention: "MultiHeadAttention",
        q_BHLC: Tensor,
        x_BLD: Tensor,
        position: BoundPosition,
        ctx: Context,
    ) -> tuple[Tensor, Tensor, Tensor, BoundMask]:
        """Project, rotate, store."""
        k_BKLC = attention.split(attention.k_norm(attention.k(x_BLD)))
        v_BKLC = attention.split(self.values(attention.v(x_BLD)))
        q_BHLC, k_BKLC = position.rotate(q_BHLC, k_BKLC)
        k_BKSC, v_BKSC = ctx.layer.extend(attention.mask, k_BKLC, v_BKLC)  # type: ignore[union-attr]
        return q_BHLC, k_BKSC, v_BKSC, ctx.masks[attention.mask]


class CrossSource(nn.Module):
    """Cross-attention: keys and values of the encoder's output, projected once and then kept (Vaswani et al. 3.2.3).

    Shapes: x ``[B, L, D]`` and memory ``[B, S, D]`` to q ``[B, H, L, C]``, k and v ``[B, K, S, C]``.
    """

    @spec
    class Spec(ModuleSpec):
        """It has no settings."""

        def build(self, width: int) -> "CrossSource":
            """Return the source; it has no parameters."""
            return CrossSource()

    def forward(
        self,
        attention: "MultiHeadAttention",
        q_BHLC: Tensor,
        x_BLD: Tensor,
        position: BoundPosition,
        ctx: Context,
    ) -> tuple[Tensor, Tensor, Tensor, BoundMask]:
        """Recall what was projected, or project the memory now."""
        assert ctx.layer is not None
        assert ctx.memory_mask is not None

        def project() -> tuple[Tensor, Tensor]:
            assert ctx.memory is not None
            k_BSE, v_BSE = attention.k_norm(attention.k(ctx.memory)), attention.v(ctx.memory)
            return attention.split(k_BSE), attention.split(v_BSE)

        return q_BHLC, *ctx.layer.recall(project), ctx.memory_mask
