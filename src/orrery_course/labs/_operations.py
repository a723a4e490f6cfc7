"""Operations of a layer, counted while it runs: attention's product of all with all, and steps of what has a state."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from orrery.nn.attention.kernels import eager
from orrery.nn.attention.operands import KeysValues, Operands
from orrery.nn.linear import matrix_state
from orrery.nn.masks import PLAIN_FULL

Layer = Callable[[int, int], int]
"""Runs a layer on so many words of so many channels and returns the operations."""


def counted(act: Callable[[], object]) -> int:
    """Return the operations of all products of matrices while something runs, two for a multiplication and a sum."""
    counter = FlopCounterMode(display=False)
    with torch.no_grad(), counter:
        act()
    return int(counter.get_total_flops())


def words(length: int, width: int) -> Tensor:
    """Return random words ``[length, width]``, the same for each size."""
    return torch.randn(length, width, generator=torch.Generator().manual_seed(0))


def attend(x_LD: Tensor) -> Tensor:
    """Let every word look at every word, the words themselves as queries, keys and values: one head, no projections."""
    x = x_LD[None, None]
    return eager(x, KeysValues(x, x), Operands(mask=PLAIN_FULL, scale=x_LD.shape[1] ** -0.5))[0, 0]


def recur(x_LD: Tensor) -> Tensor:
    """Run Elman's network over the words, its definition: ``h_t = tanh(W x_t + U h_(t-1) + b)``."""
    cell = torch.nn.RNNCell(x_LD.shape[1], x_LD.shape[1])
    h_1D, states = torch.zeros(1, x_LD.shape[1]), []
    for x_D in x_LD:
        h_1D = cell(x_D[None], h_1D)
        states.append(h_1D)
    return torch.cat(states)


def remember(x_LD: Tensor) -> Tensor:
    """Run the state of gated linear attention, its definition, one head: queries, keys and values are the words.

    What is counted is reading the state; writing is no product of matrices, and as much again.
    """
    x_1LHC = x_LD[None, :, None]
    state, read = matrix_state.empty(x_1LHC, 1, x_LD.shape[1], x_LD.shape[1]), []
    for x_1HC in x_1LHC.unbind(1):
        y_1HE, state = matrix_state.step(x_1HC, x_1HC, x_1HC, torch.full_like(x_1HC, -0.1), state)
        read.append(y_1HE[:, 0])
    return torch.cat(read)


def project(x_LD: Tensor) -> Tensor:
    """Make queries, keys, values and the output of attention, what its layer does beside looking: four products."""
    for matrix_DD in torch.eye(x_LD.shape[1]).expand(4, -1, -1):
        x_LD = x_LD @ matrix_DD
    return x_LD


def operations(layer: Callable[[Tensor], Tensor], length: int, width: int) -> int:
    """Return the operations of a layer on ``length`` words of ``width`` channels."""
    x_LD = words(length, width)
    return counted(lambda: layer(x_LD))
