"""Four-bit numbers that are chosen for the inputs which a text gives (GPTQ: Frantar et al., 2022, arXiv:2210.17323)."""

import torch
from jaxtyping import Float
from torch import Tensor

from orrery.tuning._whole_numbers import FOUR, Whole, best_scale, in_half, packed, steps

DAMPING = 0.01
"""Part of the mean of the diagonal of the moments that is added to it: inputs may depend on each other."""


def solved(
    weight: Float[Tensor, "out in"], moments: Float[Tensor, "in in"], group: int
) -> tuple[Whole, Float[Tensor, "out groups"]]:
    """Return a matrix in four-bit numbers and their scales, for inputs with these second moments.

    Rounding to the nearest makes ``|W - W'|`` small; what an output is off by is ``(W - W') x``, over the inputs of a
    text ``tr (W - W') H (W - W')^T`` with ``H = sum x x^T``. The inputs of a channel are rounded from the first to the
    last, and what each is off by is made up for by those behind it, by the rows of the Cholesky factor of ``H^-1``.
    The scale of a group is that of the least squared error, each number weighed by its input's moment. An input that
    was always zero is rounded to the nearest.
    """
    left, factor, own = weight.float().clone(), _factor(moments), moments.diagonal().float()
    wholes, scales = [], []
    for start in range(0, weight.shape[1], group):
        part = left[:, start : start + group].clone()
        weights = own[start : start + group]
        scale = in_half(best_scale(part[:, None], weights if bool((weights > 0).any()) else None))[:, 0].to(
            weight.dtype
        )
        whole, errors = torch.empty_like(part), torch.empty_like(part)
        for j in range(group):
            row = factor[start + j, start : start + group]
            whole[:, j] = steps(part[:, j : j + 1], scale.float(), -FOUR, FOUR - 1)[:, 0]
            errors[:, j] = (part[:, j] - whole[:, j] * scale[:, 0].float()) / row[j]
            part[:, j:] -= errors[:, j : j + 1] * row[j:]
        left[:, start + group :] -= errors @ factor[start : start + group, start + group :]
        wholes.append(whole)
        scales.append(scale[:, 0])
    return packed(torch.stack(wholes, 1)), torch.stack(scales, 1)


def _factor(moments: Float[Tensor, "in in"]) -> Float[Tensor, "in in"]:
    """Return the upper Cholesky factor of the inverse of the damped moments."""
    wide = moments.double()
    mean = wide.diagonal().mean()
    wide = wide + torch.eye(len(wide), dtype=torch.float64) * (DAMPING * mean if mean > 0 else 1.0)
    return torch.linalg.cholesky(torch.cholesky_inverse(torch.linalg.cholesky(wide)), upper=True).float()
