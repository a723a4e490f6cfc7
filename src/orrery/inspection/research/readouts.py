"""Linear readouts of features: softmax regression for classes, ridge regression for numbers, both in float64."""

from dataclasses import dataclass
from typing import Protocol, final, runtime_checkable

import torch
from jaxtyping import Bool, Float, Shaped
from torch import Tensor

from orrery.errors import RunError, UsageError


@final
@dataclass(frozen=True)
class Readout:
    """A linear map of standardised features, ``((x - mean) / deviation) W^T + b``.

    Attributes:
        mean_F: of each feature over what it was fitted on.
        deviation_F: the same; 1 where a feature never changes.
        weight_CF: a row for each class, or one row for a number.
        bias_C: the same.
        classes_C: the label of each row; nothing where the readout gives a number.
    """

    mean_F: Float[Tensor, "F"]
    deviation_F: Float[Tensor, "F"]
    weight_CF: Float[Tensor, "C F"]
    bias_C: Float[Tensor, "C"]
    classes_C: Shaped[Tensor, "C"] | None = None

    def scores(self, x_NF: Float[Tensor, "N F"]) -> Float[Tensor, "N C"]:
        """Return the logits of the classes, or the number."""
        return self.standardised(x_NF) @ self.weight_CF.T + self.bias_C

    def standardised(self, x_NF: Float[Tensor, "N F"]) -> Float[Tensor, "N F"]:
        """Return features with mean 0 and deviation 1 over what the readout was fitted on."""
        return (x_NF.double() - self.mean_F) / self.deviation_F

    def predict(self, x_NF: Float[Tensor, "N F"]) -> Shaped[Tensor, "N"]:
        """Return the most probable label of each row, or the number."""
        scores_NC = self.scores(x_NF)
        return scores_NC[:, 0] if self.classes_C is None else self.classes_C[scores_NC.argmax(-1)]

    def direction(self) -> Float[Tensor, "C F"]:
        """Return the weights on the features as they are, before they are standardised."""
        return self.weight_CF / self.deviation_F


@runtime_checkable
class ReadoutFit(Protocol):
    """How a readout is fitted and scored."""

    @property
    def metric(self) -> str:
        """What the score is called."""
        ...

    def asked(self, labels: Shaped[Tensor, "..."]) -> Bool[Tensor, "..."]:
        """Say which labels are to be read out; the others stand for "none"."""
        ...

    def fit(self, x_NF: Float[Tensor, "N F"], labels_N: Shaped[Tensor, "N"]) -> Readout:
        """Return the readout of these rows."""
        ...

    def score(self, readout: Readout, x_NF: Float[Tensor, "N F"], labels_N: Shaped[Tensor, "N"]) -> float:
        """Return how well a readout reads other rows, 1 at best."""
        ...

    def baseline(self, fitted_N: Shaped[Tensor, "N"], labels_M: Shaped[Tensor, "M"]) -> float:
        """Return the score of the best answer that looks at no feature."""
        ...


@final
@dataclass(frozen=True)
class LogisticRegression:
    """Softmax regression: the least ``sum_n -log p(label_n | x_n) + penalty / 2 * |W|^2``; the score is the accuracy.

    Labels are whole numbers; a negative one stands for "none". Differs from scikit-learn where there are two classes:
    both have weights here, so that a penalty of p is its ``C = 2 / p``; for more classes it is ``C = 1 / p``.

    Attributes:
        penalty: of the squared weights.
        steps: the most steps of L-BFGS.
        tolerance: the greatest part of the gradient of the mean loss at which it has converged.
    """

    penalty: float = 1.0
    steps: int = 2000
    tolerance: float = 1e-4
    metric: str = "accuracy"

    def asked(self, labels: Shaped[Tensor, "..."]) -> Bool[Tensor, "..."]:
        """Return which labels are not negative."""
        return labels >= 0

    def fit(self, x_NF: Float[Tensor, "N F"], labels_N: Shaped[Tensor, "N"]) -> Readout:
        """Return the readout with the least penalised loss.

        Raises:
            UsageError: labels of one class, or a penalty that is not positive.
            RunError: L-BFGS has not converged.
        """
        if not self.penalty > 0:
            raise UsageError(f"penalty = {self.penalty} has no least loss", "give a number above 0")
        classes_C, wanted_N = labels_N.unique(return_inverse=True)
        if len(classes_C) < 2:
            raise UsageError("all labels are of one class", "give labels that differ, and enough texts")
        mean_F, deviation_F = _spread(x_NF)
        z_NF = (x_NF.double() - mean_F) / deviation_F
        weight_CF = z_NF.new_zeros(len(classes_C), z_NF.shape[1], requires_grad=True)
        bias_C = z_NF.new_zeros(len(classes_C), requires_grad=True)
        solver = torch.optim.LBFGS(
            [weight_CF, bias_C],
            max_iter=self.steps,
            tolerance_grad=self.tolerance,
            tolerance_change=0.0,
            history_size=20,
            line_search_fn="strong_wolfe",
        )

        def closure() -> Tensor:
            solver.zero_grad()
            loss = torch.nn.functional.cross_entropy(z_NF @ weight_CF.T + bias_C, wanted_N)
            loss = loss + self.penalty / (2 * len(z_NF)) * weight_CF.square().sum()
            loss.backward()
            return loss

        with torch.enable_grad():
            solver.step(closure)
            closure()
        left = max(float(one.grad.abs().max()) for one in (weight_CF, bias_C) if one.grad is not None)
        if not left <= self.tolerance:
            message = f"the probe has not converged: a gradient of {left:.1e} is left, {self.tolerance:.1e} is allowed"
            raise RunError(message, "give a greater penalty, more steps or a greater tolerance")
        return Readout(mean_F, deviation_F, weight_CF.detach(), bias_C.detach(), classes_C)

    def score(self, readout: Readout, x_NF: Float[Tensor, "N F"], labels_N: Shaped[Tensor, "N"]) -> float:
        """Return the share of labels that are right."""
        return float((readout.predict(x_NF) == labels_N).double().mean())

    def baseline(self, fitted_N: Shaped[Tensor, "N"], labels_M: Shaped[Tensor, "M"]) -> float:
        """Return the share of the label that was the most frequent."""
        return float((labels_M == fitted_N.mode().values).double().mean())


@final
@dataclass(frozen=True)
class RidgeRegression:
    """The least ``sum_n (y_n - w . x_n - b)^2 + penalty * |w|^2``; the score is R squared, on other rows.

    Labels are numbers; NaN stands for "none".

    Attributes:
        penalty: of the squared weights, scikit-learn's ``alpha``.
    """

    penalty: float = 1.0
    metric: str = "R squared"

    def asked(self, labels: Shaped[Tensor, "..."]) -> Bool[Tensor, "..."]:
        """Return which labels are numbers."""
        return labels == labels

    def fit(self, x_NF: Float[Tensor, "N F"], labels_N: Shaped[Tensor, "N"]) -> Readout:
        """Return the readout with the least penalised error.

        Raises:
            UsageError: a penalty that is not positive.
        """
        if not self.penalty > 0:
            raise UsageError(f"penalty = {self.penalty} leaves the least error open", "give a number above 0")
        mean_F, deviation_F = _spread(x_NF)
        z_NF, y_N = (x_NF.double() - mean_F) / deviation_F, labels_N.double()
        bias = y_N.mean()
        gram_FF = z_NF.T @ z_NF + self.penalty * torch.eye(z_NF.shape[1], dtype=z_NF.dtype)
        weight_F = torch.linalg.solve(gram_FF, z_NF.T @ (y_N - bias))
        return Readout(mean_F, deviation_F, weight_F[None], bias[None])

    def score(self, readout: Readout, x_NF: Float[Tensor, "N F"], labels_N: Shaped[Tensor, "N"]) -> float:
        """Return ``1 - sum (y - y')^2 / sum (y - mean)^2``."""
        y_N = labels_N.double()
        return float(1 - (y_N - readout.predict(x_NF)).square().sum() / (y_N - y_N.mean()).square().sum())

    def baseline(self, fitted_N: Shaped[Tensor, "N"], labels_M: Shaped[Tensor, "M"]) -> float:
        """Return R squared of the mean that was fitted."""
        y_M = labels_M.double()
        error_M = (y_M - fitted_N.double().mean()).square()
        return float(1 - error_M.sum() / (y_M - y_M.mean()).square().sum())


def _spread(x_NF: Tensor) -> tuple[Tensor, Tensor]:
    """Return mean and deviation of each feature, 1 for those that never change."""
    deviation_F, mean_F = torch.std_mean(x_NF.double(), 0, correction=0)
    # What is constant has a deviation of rounding errors, not of zero.
    constant_F = deviation_F <= 1e-12 * mean_F.abs().clamp(min=1.0)
    return mean_F, torch.where(constant_F, 1.0, deviation_F)
