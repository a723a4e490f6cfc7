"""Batch norm: each channel brought to the scale that it had over the pictures seen in training."""

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import batch_norm


class BatchNorm(nn.Module):
    """``(x - mean) / sqrt(var + eps) * gain + bias`` for each channel (Ioffe and Szegedy 2015, algorithms 1 and 2).

    In training mean and variance are those of the batch, and the running ones follow by a tenth of the way; otherwise
    the running ones count. They stand in the file beside the weights and no gradient changes them, so that a step in
    several parts is another step here: each part has a mean of its own. Channels stand last. Shapes: unchanged.
    """

    eps, momentum = 1e-5, 0.1

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(width)), nn.Parameter(torch.zeros(width))
        self.mean = nn.Parameter(torch.zeros(width), requires_grad=False)
        self.variance = nn.Parameter(torch.ones(width), requires_grad=False)
        self.batches = nn.Parameter(torch.zeros((), dtype=torch.long), requires_grad=False)

    def forward(self, x_BD: Float[Tensor, "*B D"]) -> Float[Tensor, "*B D"]:
        """Normalise every channel."""
        if self.training:
            self.batches.add_(1)
        # No training leaves a variance below zero; in a model of random numbers its size counts.
        variance = self.variance if self.training else self.variance.abs()
        normed_ND = batch_norm(
            x_BD.flatten(0, -2), self.mean, variance, self.weight, self.bias, self.training, self.momentum, self.eps
        )
        return normed_ND.view_as(x_BD)
