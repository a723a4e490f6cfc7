"""The law of the kernels: every way to compute attention equals the eager definition."""

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor

from orrery.laws.evidence import FLOAT32, FLOAT64, CannotRunError, Evidence, deviation, within
from orrery.laws.models import kernels_of, random_ids, tiny, trained
from orrery.laws.place import placed
from orrery.nn.attention.kernels import Kernel, eager
from orrery.nn.attention.operands import KeysValues, Operands
from orrery.nn.masks import PLAIN_CAUSAL, BoundMask

DTYPES = {"float64": (torch.float64, FLOAT64), "float32": (torch.float32, FLOAT32)}


def check(family: str) -> Iterator[Evidence]:
    """Compare every kernel with eager: alone under random masks and biases, in the model, and its gradients.

    Raises:
        CannotRunError: eager is the only kernel that can compute the family, or it has no attention.
    """
    if not kernels_of(family):
        raise CannotRunError("inapplicable", "it has no attention that a kernel computes")
    if list(kernels_of(family)) == ["eager"]:
        raise CannotRunError("inapplicable", "its scores are capped, and only the definition computes that")
    evidence = partial(within, law="kernel", family=family)
    for name, kernel in kernels_of(family).items():
        if kernel is eager:
            continue
        for precision, (dtype, bound) in DTYPES.items():
            value = in_the_model(family, kernel, dtype)
            yield evidence(f"{name} == eager, logits, {precision}", value=value, bound=bound)
        yield evidence(f"{name} == eager, gradients, float64", value=gradients(family, kernel), bound=FLOAT64)
        yield evidence(f"{name} == eager, random masks and biases", value=alone(kernel), bound=FLOAT32)


@torch.no_grad()
def in_the_model(family: str, kernel: Kernel, dtype: torch.dtype) -> float:
    """Compare logits of whole rows."""
    model, ids = tiny(family, dtype), random_ids(3, 17)
    return deviation(model.logits(ids, kernel=kernel), model.logits(ids, kernel=eager))


def gradients(family: str, kernel: Kernel) -> float:
    """Compare the gradients of every parameter on left-padded rows, one of them nothing but padding."""
    model, ids = tiny(family), random_ids(3, 11)
    real = placed(torch.arange(11) >= torch.tensor([[0], [5], [11]]))

    def gradient(chosen: Kernel) -> tuple[Tensor, ...]:
        loss = model.logits(ids, real=real, kernel=chosen)[real].pow(2).mean()
        gradients = torch.autograd.grad(loss, trained(model), allow_unused=True)
        return tuple(placed(torch.zeros(())) if gradient is None else gradient for gradient in gradients)

    return max(deviation(a, b) for a, b in zip(gradient(kernel), gradient(eager), strict=True))


def alone(kernel: Kernel) -> float:
    """Compare under eight random masks, fully masked rows among them, with and without a bias, grouped or not."""
    rng = torch.Generator().manual_seed(3)
    worst = 0.0
    for trial in range(8):
        q = placed(torch.randn(2, 4, 5, 8, generator=rng))
        k, v = placed(torch.randn(2, 2, 2 if trial % 2 else 4, 7, 8, generator=rng))
        dense = placed(torch.rand(2, 1, 5, 7, generator=rng) < 0.5)
        dense[0, :, 2] = False
        mask = BoundMask(dense=dense, is_causal=False) if trial < 6 else PLAIN_CAUSAL
        bias = placed(torch.randn(2, 4, 5, k.shape[2], generator=rng)) if trial % 3 == 0 else None
        if mask is PLAIN_CAUSAL:  # only square calls are plainly causal
            k, v = k[:, :, :5], v[:, :, :5]
            bias = None if bias is None else bias[..., :5]
        call = partial(_call, q=q, k=k, v=v, mask=mask, bias=bias)
        worst = max(worst, deviation(call(kernel), call(eager)))
    return worst


def _call(kernel: Kernel, q: Tensor, k: Tensor, v: Tensor, mask: BoundMask, bias: Tensor | None) -> Tensor:
    return kernel(q, KeysValues(k, v), Operands(mask=mask, bias_BHLS=bias, scale=0.4))
