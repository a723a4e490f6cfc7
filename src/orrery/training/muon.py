"""Muon: the momentum of each matrix inside the blocks, made orthogonal; AdamW for everything else."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any, final

import torch
from jaxtyping import Float
from torch import Tensor

from orrery.training.parallel.shards import like, own_part, whole

COEFFICIENTS = (3.4445, -4.7750, 2.0315)
"""Of ``a x + b x^3 + c x^5``, chosen by Jordan so that singular values grow fast and end between 0.7 and 1.2."""
ITERATIONS = 5
MOMENTUM = "momentum_buffer"
"""What the state of a matrix is called."""


@final
class Muon(torch.optim.AdamW):
    """``m = momentum m + g; w = (1 - rate decay) w - rate 0.2 sqrt(max(rows, columns)) orthogonal(g + momentum m)``.

    Papers: Jordan et al. 2024, https://kellerjordan.github.io/posts/muon; Liu et al. 2025, whose factor gives an update
    the size of AdamW's, so that one rate and one weight decay serve both. Groups with ``orthogonal`` hold the matrices;
    the others are AdamW's.
    Differs from torch.optim.Muon: it orthogonalises matrices of one shape together, and in bfloat16 only under
    autocast, as a run does whose processor multiplies it natively; elsewhere in the dtype of the gradient.
    """

    def __init__(self, groups: Iterable[dict[str, Any]], lr: float, momentum: float = 0.95, **adamw: Any) -> None:
        self.momentum = momentum
        super().__init__(groups, lr=lr, **adamw)

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Take one step: AdamW's with its groups, then that of the matrices."""
        groups = self.param_groups
        try:
            self.param_groups = [group for group in groups if not group.get("orthogonal")]
            loss = super().step(closure)
        finally:
            self.param_groups = groups
        for group in groups:
            if group.get("orthogonal"):
                self._step_matrices(group)
        return loss

    def _step_matrices(self, group: dict[str, Any]) -> None:
        alike: dict[Any, list[Tensor]] = defaultdict(list)
        for weight in group["params"]:
            if weight.grad is not None:
                alike[weight.shape, weight.dtype, weight.device].append(weight)
        for (shape, _, _), weights in alike.items():
            updates_NRC = orthogonal(torch.stack([self._direction(weight) for weight in weights]))
            size = group["lr"] * 0.2 * max(shape) ** 0.5
            for weight, update_RC in zip(weights, updates_NRC, strict=True):
                own, update = own_part(weight), own_part(like(update_RC, weight))
                own.mul_(1 - group["lr"] * group["weight_decay"]).sub_(update, alpha=size)

    def _direction(self, weight: Tensor) -> Tensor:
        """Return the gradient with the momentum, one step ahead (Nesterov), with the parts of all processes."""
        gradient = weight.grad
        assert gradient is not None
        state = self.state[weight]
        if MOMENTUM not in state:
            state[MOMENTUM] = torch.zeros_like(weight)
        momentum: Tensor = state[MOMENTUM]
        momentum.mul_(self.momentum).add_(gradient)
        return whole(gradient + self.momentum * momentum)


def orthogonal(matrices_NRC: Float[Tensor, "N R C"]) -> Float[Tensor, "N R C"]:
    """Return ``U V^T`` of each ``U S V^T``, nearly: five steps of Newton and Schulz, which only multiply.

    The singular vectors stay as they are, and every singular value that is not tiny ends between 0.7 and 1.2.
    """
    if matrices_NRC.shape[1] > matrices_NRC.shape[2]:
        return orthogonal(matrices_NRC.mT).mT
    a, b, c = COEFFICIENTS
    x_NRC = matrices_NRC / matrices_NRC.norm(dim=(1, 2), keepdim=True).clamp_min(1e-7)
    for _ in range(ITERATIONS):
        squared_NRR = x_NRC @ x_NRC.mT
        # b x x^T + c (x x^T)^2, and a x + that times x: sums and products in one call are a fifth faster.
        factor_NRR = torch.baddbmm(squared_NRR, squared_NRR, squared_NRR, beta=b, alpha=c)
        x_NRC = torch.baddbmm(x_NRC, factor_NRR, x_NRC, beta=a)
    return x_NRC
