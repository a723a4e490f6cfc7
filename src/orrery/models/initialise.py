"""Initial weights."""

import torch
from torch import nn

from orrery.nn.recurrent.recurrence import Recurrence

_INTO_THE_STREAM = ("out", "down")
"""The projections that add to the residual stream."""


@torch.no_grad()
def initialise(model: nn.Module, depth: int, seed: int, std: float = 0.02) -> None:
    """Draw the weights as GPT-2 does (Radford et al. 2019, 2.3).

    Matrices are normal with deviation ``std``, those that add to the residual stream ``std / sqrt(2 depth)`` so that
    the stream's variance does not grow with depth; biases are zero; norms keep a gain of one. Everything of a
    recurrence is uniform within ``1 / sqrt(D)``, and a table that only a recurrence reads is standard normal, as in
    torch. Differs for a reason: no norm enlarges what a recurrence reads, and with 0.02 its biases drown the words. A
    two-layer Elman network of 265 on characters stood at 3.34 nats after 90 steps, and at 2.19 with a deviation of 1.
    """
    rng = torch.Generator().manual_seed(seed)
    recurrent = any(isinstance(module, Recurrence) for module in model.modules())
    tied = {id(module.weight) for module in model.modules() if isinstance(module, nn.Linear)}
    for name, module in model.named_modules():
        if isinstance(module, nn.Linear | nn.Embedding | nn.Conv1d):
            last = name.rpartition(".")[2]
            deviation = std / (2 * depth) ** 0.5 if last in _INTO_THE_STREAM else std
            if recurrent and isinstance(module, nn.Embedding) and id(module.weight) not in tied:
                deviation = 1.0
            values = torch.empty(module.weight.shape).normal_(0.0, deviation, generator=rng)
            module.weight.copy_(values)
        if isinstance(module, nn.Linear | nn.Conv1d) and module.bias is not None:
            module.bias.zero_()
        if isinstance(module, nn.RNNBase):
            for parameter in module.parameters():
                parameter.copy_(_uniform(parameter.shape, module.hidden_size**-0.5, rng))


def _uniform(shape: torch.Size, bound: float, rng: torch.Generator) -> torch.Tensor:
    return torch.empty(shape).uniform_(-bound, bound, generator=rng)
