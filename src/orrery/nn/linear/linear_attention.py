"""Linear attention: a kernel with finitely many features in the place of the softmax."""

from typing import ClassVar

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from orrery.nn.linear.matrix_state import wide
from orrery.nn.linear.mixer import MatrixMemory, in_heads
from orrery.nn.linear.update import OuterProduct
from orrery.nn.mixer import Show
from orrery.nn.spec import ModuleSpec, spec

EPSILON = 1e-6
"""What is added to the sum of the weights, as in the authors' implementation: features may underflow."""


class EluPlusOne(nn.Module):
    """``elu(x) + 1``, which is positive (Katharopoulos et al. 2020, equation 7). Shapes: ``[B, L, H, C]`` unchanged."""

    @spec
    class Spec(ModuleSpec):
        """It has no settings."""

        def build(self, width: int) -> "EluPlusOne":
            """Return the map, for keys of any width."""
            return EluPlusOne()

    def forward(self, x_BLHC: Float[Tensor, "B L H C"]) -> Float[Tensor, "B L H C"]:
        """Return the features."""
        return F.elu(x_BLHC) + 1


class LinearAttention(MatrixMemory):
    """``y_t = phi(q_t) S_t / phi(q_t) z_t``, ``S_t = sum_s phi(k_s) v_s^T``, ``z_t = sum_s phi(k_s)``.

    Attention whose weights are ``phi(q) phi(k)`` instead of ``exp(q k)`` (Katharopoulos et al. 2020, section 3.2), the
    feature map ``phi`` in a slot. Nothing fades. The normaliser z stands in the state as the last column: the key of
    every token is also written beside a one. Differs from the paper: projections without biases.
    Shapes: ``[B, L, D]`` to ``[B, L, D]``; the state ``[B, H, C, E + 1]``, C the features of a key.
    """

    @spec
    class Spec(ModuleSpec):
        """Channels of a head's keys and values, the map to features, and tokens of a piece in the chunked form."""

        keeps_state: ClassVar[bool] = True

        heads: int
        key_width: int
        value_width: int
        features: ModuleSpec = EluPlusOne.Spec()
        size: int = 64
        mask: str = "past"

        def build(self, width: int) -> "LinearAttention":
            """Return the mixer."""
            return LinearAttention(self, width)

    def __init__(self, spec: Spec, width: int) -> None:
        super().__init__(
            spec.mask, spec.size, (spec.heads, spec.features.out_width(spec.key_width), spec.value_width + 1)
        )
        self.q = nn.Linear(width, spec.heads * spec.key_width, bias=False)
        self.k = nn.Linear(width, spec.heads * spec.key_width, bias=False)
        self.v = nn.Linear(width, spec.heads * spec.value_width, bias=False)
        self.features = spec.features.build(spec.key_width)
        self.out = nn.Linear(spec.heads * spec.value_width, width, bias=False)

    def update(self, x_BLE: Float[Tensor, "B L E"], show: Show) -> OuterProduct:
        """Return features of queries and keys, and each value beside a one."""
        q_BLHC, k_BLHC, v_BLHE = (in_heads(part(x_BLE), self.heads) for part in (self.q, self.k, self.v))
        q_BLHC, k_BLHC = show("query", self.features(q_BLHC)), show("key", self.features(k_BLHC))
        v_BLHE = F.pad(wide(show("value", v_BLHE)), (0, 1), value=1.0)
        return OuterProduct(q_BLHC, k_BLHC, v_BLHE, decay=torch.zeros_like(k_BLHC[..., :1]))

    def finish(
        self, y_BLHE: Float[Tensor, "B L H E"], x_BLF: Float[Tensor, "B L F"], show: Show
    ) -> Float[Tensor, "B L D"]:
        """Divide by what the weights sum to, which the last column holds."""
        sums_BLH1 = show("normaliser", y_BLHE[..., -1:])
        return self.out((y_BLHE[..., :-1] / (sums_BLH1 + EPSILON)).flatten(2).to(x_BLF.dtype))
