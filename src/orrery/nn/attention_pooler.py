"""A row of vectors pooled by attention: a learned query reads it."""

from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from orrery.errors import UsageError
from orrery.nn.spec import ModuleSpec, spec


class AttentionPooler(nn.Module):
    """``p + f(norm(p))``, ``p = W_out concat_h(softmax(q_h k_h^T / sqrt(C)) v_h)``, ``q = W_q m`` with a learned ``m``.

    One vector for a row (Zhai et al. 2022, "Scaling vision transformers", 2.2; SigLIP). Keys and values are made of the
    row, each map with a bias. Shapes: ``[B, L, D]`` to ``[B, D]``.
    """

    @spec
    class Spec(ModuleSpec):
        """How many heads, the norm, and the feed-forward network behind it, whose width is the row's again."""

        heads: int
        norm: ModuleSpec
        feed_forward: ModuleSpec

        def build(self, width: int) -> "AttentionPooler":
            """Return the pooler.

            Raises:
                UsageError: the heads do not share the width.
            """
            if self.heads < 1 or width % self.heads:
                raise UsageError(f"{self.heads} heads cannot share {width} channels", "choose a divisor of them")
            return AttentionPooler(self, width)

    def __init__(self, spec: Spec, width: int) -> None:
        super().__init__()
        self.heads = spec.heads
        self.query = nn.Embedding(1, width)
        self.q, self.k, self.v, self.out = (nn.Linear(width, width) for _ in range(4))
        self.norm, self.feed_forward = spec.norm.build(width), spec.feed_forward.build(width)

    def forward(
        self, x_BLD: Float[Tensor, "B L D"], real_BL: Bool[Tensor, "B L"] | None = None
    ) -> Float[Tensor, "B D"]:
        """Let the query read the real tokens of every row."""
        q_BHLC = self._split(self.q(self.query.weight).expand(len(x_BLD), 1, -1))
        shown = None if real_BL is None else real_BL[:, None, None]
        mixed_BHLC = scaled_dot_product_attention(q_BHLC, self._split(self.k(x_BLD)), self._split(self.v(x_BLD)), shown)
        pooled_BD = self.out(mixed_BHLC.flatten(1))
        found_BD: Tensor = pooled_BD + self.feed_forward(self.norm(pooled_BD))
        return found_BD

    def _split(self, x_BLE: Float[Tensor, "B L E"]) -> Float[Tensor, "B H L C"]:
        return x_BLE.unflatten(-1, (self.heads, -1)).transpose(1, 2)
