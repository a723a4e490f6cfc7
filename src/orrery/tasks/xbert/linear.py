"""Linear classifiers of several labels at once, kept with the columns alone that they use."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

STEPS, HISTORY = 30, 8
"""Steps of L-BFGS, and how many of them it remembers."""


def squared_hinge(x_MF: Float[Tensor, "M F"], right_MN: Float[Tensor, "M N"], cost: float = 1.0) -> Tensor:
    """Return ``argmin_W |W|^2 / 2 + cost sum_mn max(0, 1 - y_mn (x_m W)_n)^2`` [F, N], with ``y`` 1 or -1.

    Each column is a linear support vector machine with the squared hinge (Fan et al. 2008), as in PECOS (Yu et al.
    2022). Differs from both in the solver: all columns are found together by L-BFGS, in so many steps.

    Args:
        x_MF: the rows, dense or as a sparse tensor of torch; a column of ones makes offsets.
        right_MN: 1 where a row has the label, else 0.
        cost: what a fault costs beside the length of the weights.
    """
    signs_MN, turned_FM = right_MN * 2 - 1, x_MF.t().to_sparse_csr() if x_MF.layout != torch.strided else x_MF.t()
    weights_FN = torch.zeros(x_MF.shape[1], right_MN.shape[1], dtype=x_MF.dtype, requires_grad=True)
    solver = torch.optim.LBFGS([weights_FN], max_iter=STEPS, history_size=HISTORY, line_search_fn="strong_wolfe")

    @torch.no_grad()
    def loss() -> Tensor:
        faults_MN = (1 - signs_MN * (x_MF @ weights_FN)).clamp_(min=0)
        weights_FN.grad = weights_FN - 2 * cost * (turned_FM @ (signs_MN * faults_MN))
        return weights_FN.square().sum() / 2 + cost * faults_MN.square().sum()

    solver.step(loss)
    return weights_FN.detach()


@dataclass(frozen=True)
class Block:
    """Classifiers of a few labels: ``x W`` over the columns that one of their rows had; others weigh nothing.

    Attributes:
        columns: the numbers of these columns, rising.
        weights: a row for each column, a column for each label.
    """

    columns: NDArray[np.int64]
    weights: NDArray[np.float32]

    def scores(self, columns: NDArray[np.int64], values: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the number of each label for a row that has these values in these columns."""
        places = np.searchsorted(self.columns, columns)
        places[places == len(self.columns)] = 0
        known = self.columns[places] == columns if len(self.columns) else np.zeros(len(columns), bool)
        found: NDArray[np.float32] = values[known] @ self.weights[places[known]]
        return found


def hinged(scores: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return ``-max(0, 1 - s)^3``, the logarithm of what stands for a probability in PECOS (``l3-hinge``)."""
    found: NDArray[np.float32] = -(np.maximum(1 - scores, 0) ** 3)
    return found
