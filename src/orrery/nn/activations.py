"""Activations by name; a new one is a new entry."""

from collections.abc import Callable
from functools import partial
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from orrery.errors import UsageError, there_are
from orrery.nn.parting import Grain

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu_tanh": partial(F.gelu, approximate="tanh"),
    "gelu_sigmoid": lambda x: x * torch.sigmoid(1.702 * x),
    "relu_squared": lambda x: F.relu(x).square(),
    "silu": F.silu,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "linear": lambda x: x,
}
"""relu: Vaswani et al.; gelu: Hendrycks and Gimpel 2016, exact; gelu_tanh: its tanh form (GPT-2); silu: Llama.

gelu_sigmoid: the paper's coarser form ``x sigmoid(1.702 x)`` (CLIP); relu_squared: Primer (So et al. 2021).
"""


class XIELU(nn.Module):
    """``a x^2 + b x`` above zero, ``c (exp(min(x, eps)) - 1 - x) + b x`` below (xIELU, Huang 2024; Apertus).

    ``a = softplus(alpha_p)`` and ``c = b + softplus(alpha_n)`` are learned, one of each a layer, and begin at 0.8;
    ``b`` is 1/2. The constants come with a file and are not trained. Shapes: unchanged.
    """

    parting: ClassVar = Grain.NUMBER

    def __init__(self) -> None:
        super().__init__()
        self.alpha_p = nn.Parameter(torch.tensor([0.8]).expm1().log())
        self.alpha_n = nn.Parameter(torch.tensor([0.3]).expm1().log())
        self.beta = nn.Parameter(torch.tensor(0.5), requires_grad=False)
        self.eps = nn.Parameter(torch.tensor(-1e-6), requires_grad=False)

    def forward(self, x: Tensor) -> Tensor:
        """Return the activation of each number."""
        rise, fall = F.softplus(self.alpha_p), self.beta + F.softplus(self.alpha_n)
        below = (torch.expm1(torch.minimum(x, self.eps)) - x) * fall
        return torch.where(x > 0, rise * x * x, below) + self.beta * x


LEARNED: dict[str, Callable[[], nn.Module]] = {"xielu": XIELU}
"""Activations with parameters: every use has its own."""


def activation(name: str) -> Callable[[Tensor], Tensor]:
    """Return the activation of this name, a new module where it learns.

    Raises:
        UsageError: there is none.
    """
    if name in LEARNED:
        return LEARNED[name]()
    try:
        return ACTIVATIONS[name]
    except KeyError:
        raise UsageError(f"no activation {name!r}", there_are(name, [*ACTIVATIONS, *LEARNED])) from None
