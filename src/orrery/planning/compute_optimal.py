"""The compute-optimal size: how many parameters and tokens make the least loss for a budget of operations.

Hoffmann et al. 2022 (Chinchilla) estimate it in three ways. Two give power laws of the budget; the third gives the loss
itself, from which the best size follows in closed form.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from orrery.planning.log_line import log_line
from orrery.planning.training_compute import DENSE, positive


@dataclass(frozen=True)
class Allocation:
    """How a budget is spent: ``flops = 6 parameters tokens``."""

    flops: float
    parameters: float
    tokens: float

    @property
    def tokens_per_parameter(self) -> float:
        """Training tokens over parameters."""
        return self.tokens / self.parameters


@dataclass(frozen=True)
class LossLaw:
    """``L(N, D) = E + A / N^alpha + B / D^beta`` (Hoffmann et al. 2022, equation 2), in nats a token.

    Attributes:
        irreducible: E, the loss that no model and no amount of text goes below.
        size_scale: A.
        size_exponent: alpha.
        data_scale: B.
        data_exponent: beta.
    """

    irreducible: float
    size_scale: float
    size_exponent: float
    data_scale: float
    data_exponent: float

    def loss(self, parameters: int | float, tokens: int | float) -> float:
        """Return the loss of N parameters trained on D tokens.

        Raises:
            UsageError: a count that is not a positive finite number.
        """
        _counts(parameters, tokens)
        return (
            self.irreducible
            + self.size_scale / parameters**self.size_exponent
            + self.data_scale / tokens**self.data_exponent
        )

    def best(self, flops: int | float) -> Allocation:
        """Return the N and D of least loss with ``6 N D`` operations (Hoffmann et al. 2022, equation 4).

        ``N = G (C / 6)^a`` and ``D = (C / 6)^b / G`` with ``a = beta / (alpha + beta)``, ``b = alpha / (alpha + beta)``
        and ``G = (alpha A / (beta B))^(1 / (alpha + beta))``.

        Raises:
            UsageError: a budget that is not a positive finite number, or a law that falls with neither.
        """
        positive("budget of operations", flops, "5.76e23")
        self._falls()
        parameters = self._g * (flops / DENSE) ** self.exponent
        return Allocation(flops, parameters, flops / DENSE / parameters)

    def best_tokens(self, parameters: int | float) -> Allocation:
        """Return the tokens for which N parameters are the best size: the budget at which ``best`` gives N.

        Raises:
            UsageError: a count that is not a positive finite number.
        """
        positive("parameters", parameters, "70e9")
        self._falls()
        return self.best(DENSE * (parameters / self._g) ** (1 / self.exponent))

    def best_parameters(self, tokens: int | float) -> Allocation:
        """Return the size for which D tokens are the best amount: the budget at which ``best`` gives D.

        Raises:
            UsageError: a count that is not a positive finite number.
        """
        positive("training tokens", tokens, "1.4e12")
        self._falls()
        return self.best(DENSE * (tokens * self._g) ** (1 / (1 - self.exponent)))

    @property
    def exponent(self) -> float:
        """``a`` of ``N = G (C / 6)^a``."""
        return self.data_exponent / (self.size_exponent + self.data_exponent)

    @property
    def _g(self) -> float:
        ratio = self.size_exponent * self.size_scale / (self.data_exponent * self.data_scale)
        return ratio ** (1 / (self.size_exponent + self.data_exponent))

    def _falls(self) -> None:
        """Refuse a law of which more parameters or more tokens are not better: it has no best size."""
        positive("exponent of the size", self.size_exponent, "0.34: a law that falls with the size has a best one")
        positive("exponent of the data", self.data_exponent, "0.28: a law that falls with the data has a best size")
        positive("scale of the size", self.size_scale, "406.4")
        positive("scale of the data", self.data_scale, "410.7")


CHINCHILLA = LossLaw(1.69, 406.4, 0.34, 410.7, 0.28)
"""Hoffmann et al. 2022, appendix D.2, equation 10, as printed."""
CHINCHILLA_UNROUNDED = LossLaw(1.6934, 406.4, 0.3392, 410.7, 0.2849)
"""The same with the digits of the source file of the paper, as Besiroglu et al. 2024 give them."""
REFITTED = LossLaw(1.8172, 482.01, 0.3478, 2085.43, 0.3658)
"""Besiroglu et al. 2024, who read the runs off the paper's Figure 4 and fitted them again."""


@dataclass(frozen=True)
class PowerLaw:
    """``N = k C^a`` and ``D = C / (6 N)``: an estimate that gives sizes and no loss.

    Attributes:
        scale: k.
        exponent: a.
    """

    scale: float
    exponent: float

    def best(self, flops: int | float) -> Allocation:
        """Return the best N and D for a budget.

        Raises:
            UsageError: a budget that is not a positive finite number.
        """
        positive("budget of operations", flops, "5.76e23")
        parameters = self.scale * flops**self.exponent
        return Allocation(flops, parameters, flops / DENSE / parameters)

    def best_tokens(self, parameters: int | float) -> Allocation:
        """Return the tokens for which N parameters are the best size.

        Raises:
            UsageError: a count that is not a positive finite number.
        """
        positive("parameters", parameters, "70e9")
        return self.best((parameters / self.scale) ** (1 / self.exponent))

    def best_parameters(self, tokens: int | float) -> Allocation:
        """Return the size for which D tokens are the best amount.

        Raises:
            UsageError: a count that is not a positive finite number.
        """
        positive("training tokens", tokens, "1.4e12")
        return self.best((DENSE * self.scale * tokens) ** (1 / (1 - self.exponent)))


def through(sizes: Sequence[tuple[int | float, int | float]]) -> PowerLaw:
    """Return the power law nearest to (parameters, operations): a straight line through their logarithms."""
    slope, height = log_line([flops for _, flops in sizes], [parameters for parameters, _ in sizes])
    return PowerLaw(math.exp(height), slope)


def _counts(parameters: int | float, tokens: int | float) -> None:
    positive("parameters", parameters, "70e9")
    positive("training tokens", tokens, "1.4e12")
