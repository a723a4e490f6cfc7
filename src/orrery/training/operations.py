"""Floating-point operations: what a trained token costs."""

from collections.abc import Iterable
from math import prod

from torch import nn

from orrery.nn.feedforward.moe import MoE
from orrery.nn.positions.sinusoidal_table import SinusoidalTable
from orrery.tuning import BlockEmbedding, shapes_of


def matmul_parameters(model: nn.Module) -> int:
    """Count the weights that multiply activations: matrices, without tables that are only looked up.

    An embedding tied to the head is counted, for the head multiplies by it.
    """
    shapes, multiplied = shapes_of(model), set[int]()
    for module in model.modules():
        if isinstance(module, nn.Embedding | BlockEmbedding | SinusoidalTable):
            continue
        scale = getattr(module, "weight_scale", None)  # of whole numbers: no weight of its own
        multiplied |= {id(one) for one in module.parameters(recurse=False) if one.ndim >= 2 and one is not scale}
    return sum(prod(shapes[one]) for one in multiplied)


def multiplied_parameters(model: nn.Module) -> int:
    """Count the weights that one token is multiplied by: those of ``matmul_parameters`` without the idle experts."""
    mixtures = [module for module in model.modules() if isinstance(module, MoE)]
    idle = sum((len(mixture.experts) - mixture.chosen) * matmul_parameters(mixture.experts[0]) for mixture in mixtures)
    return matmul_parameters(model) - idle


def training_operations_per_token(matmul_weights: int, windows: Iterable[int | None], width: int, length: int) -> float:
    """Return the operations of forward and backward for one token: ``6 N + 12 width sum_layers keys``.

    Two for each weight forward, four backward; attention adds twice ``2 width`` for each key that a causal query
    sees on average, threefold with the backward pass. Kaplan et al. 2020, section 2.1, and Chowdhery et al. 2022,
    appendix B, who count all ``length`` keys.

    Args:
        matmul_weights: N, that a token is multiplied by.
        windows: of each attention, how many keys a query sees at most; nothing where it sees all before it.
        width: of the queries of a layer, all heads together.
        length: tokens of a row.
    """
    return 6.0 * matmul_weights + 12.0 * width * sum(mean_keys(window, length) for window in windows)


def mean_keys(window: int | None, length: int) -> float:
    """Return how many keys a causal query sees on average: ``w - w^2 / 2 length``, half of them where w is all.

    The average over places t of ``min(t, w)``, as of many tokens.
    """
    seen = length if window is None else min(window, length)
    return seen - seen * seen / (2.0 * length)
