"""Gated linear attention: every channel of the keys forgets at its own pace, which the token decides."""

from typing import ClassVar

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from orrery.nn.linear.matrix_state import wide
from orrery.nn.linear.mixer import MatrixMemory, in_heads, show_decay
from orrery.nn.linear.update import OuterProduct
from orrery.nn.mixer import Show
from orrery.nn.norms import HeadNorm, RMSNorm
from orrery.nn.spec import ModuleSpec, spec


class GatedLinearAttention(MatrixMemory):
    """``S_t = diag(a_t) S_{t-1} + k_t v_t^T``, ``a_t = sigmoid(x_t W_1 W_2 + b)^(1/16)`` (GLA: Yang et al. 2024).

    Section 4.4 of the paper: ``y_t = W_out (norm(q_t S_t) * silu(W_gate x_t))``, q scaled by ``1 / sqrt(C)``, and the
    gate ``a`` through a low rank. The power keeps the state long: at first half of it is left after 16 tokens.
    Differs from the paper: the norm of a head is an RMSNorm, with one gain for all heads, and the output gate has no
    bias, as in the authors' implementation. Shapes: ``[B, L, D]`` to ``[B, L, D]``; the state ``[B, H, C, E]``.
    """

    @spec
    class Spec(ModuleSpec):
        """Channels of a head's keys and values; ``rank`` of the forget gate, and the root that is taken of it."""

        keeps_state: ClassVar[bool] = True

        heads: int
        key_width: int
        value_width: int
        rank: int = 16
        root: float = 16.0
        eps: float = 1e-6
        size: int = 64
        mask: str = "past"

        def build(self, width: int) -> "GatedLinearAttention":
            """Return the mixer."""
            return GatedLinearAttention(self, width)

    def __init__(self, spec: Spec, width: int) -> None:
        super().__init__(spec.mask, spec.size, (spec.heads, spec.key_width, spec.value_width))
        self.root = spec.root
        keys, values = spec.heads * spec.key_width, spec.heads * spec.value_width
        self.q, self.k = nn.Linear(width, keys, bias=False), nn.Linear(width, keys, bias=False)
        self.v, self.gate = nn.Linear(width, values, bias=False), nn.Linear(width, values, bias=False)
        self.narrow, self.forget = nn.Linear(width, spec.rank, bias=False), nn.Linear(spec.rank, keys)
        self.norm = HeadNorm.Spec(norm=RMSNorm.Spec(eps=spec.eps), head_width=spec.value_width).build(values)
        self.out = nn.Linear(values, width, bias=False)

    def update(self, x_BLE: Float[Tensor, "B L E"], show: Show) -> OuterProduct:
        """Return queries, keys, values and the log of the gate."""
        number, width, _ = self.shape
        q_BLHC, k_BLHC, v_BLHE = (in_heads(part(x_BLE), number) for part in (self.q, self.k, self.v))
        decay_BLHC = F.logsigmoid(wide(in_heads(self.forget(self.narrow(x_BLE)), number))) / self.root
        return OuterProduct(
            show("query", q_BLHC) * width**-0.5,
            show("key", k_BLHC),
            show("value", v_BLHE),
            show_decay(decay_BLHC, show),
        )

    def finish(
        self, y_BLHE: Float[Tensor, "B L H E"], x_BLF: Float[Tensor, "B L F"], show: Show
    ) -> Float[Tensor, "B L D"]:
        """Normalise each head and let the gate decide what passes."""
        return self.out(self.norm(y_BLHE.flatten(2)) * show("output_gate", F.silu(self.gate(x_BLF))))
