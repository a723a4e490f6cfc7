"""Activations by name; a new one is a new entry."""

from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from orrery.errors import UsageError, there_are

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu_tanh": partial(F.gelu, approximate="tanh"),
    "gelu_sigmoid": lambda x: x * torch.sigmoid(1.702 * x),
    "relu_squared": lambda x: F.relu(x).square(),
    "silu": F.silu,
    "tanh": torch.tanh,
    "linear": lambda x: x,
}
"""relu: Vaswani et al.; gelu: Hendrycks and Gimpel 2016, exact; gelu_tanh: its tanh form (GPT-2); silu: Llama.

gelu_sigmoid: the paper's coarser form ``x sigmoid(1.702 x)`` (CLIP); relu_squared: Primer (So et al. 2021).
"""


def activation(name: str) -> Callable[[Tensor], Tensor]:
    """Return the activation of this name.

    Raises:
        UsageError: there is none.
    """
    try:
        return ACTIVATIONS[name]
    except KeyError:
        raise UsageError(f"no activation {name!r}", there_are(name, ACTIVATIONS)) from None
