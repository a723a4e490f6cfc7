"""What several examples of the course share: attention by the kernel that defines it, drawn numbers, rows as text."""

import math
from typing import Any

import torch
from torch import Tensor

from orrery.nn.attention.kernels import eager
from orrery.nn.attention.operands import KeysValues, Operands
from orrery.nn.cache.contract import UNCACHED, Layer
from orrery.nn.context import Context
from orrery.nn.masks import PLAIN_CAUSAL, BoundMask
from orrery.nn.positions.scheme import NO_POSITION
from orrery.nn.spec import ModuleSpec


def drawn(*shape: int, seed: int = 0) -> Tensor:
    """Return standard normal numbers in float64, the same each time."""
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def attention(
    q_LC: Tensor, k_SC: Tensor, v_SC: Tensor, *, causal: bool = False, scale: float | None = None
) -> tuple[Tensor, Tensor]:
    """Return ``softmax(Q K^T scale + M) V`` of the eager kernel, ``[L, C]``, and its weights, ``[L, S]``.

    ``scale`` is 1 / sqrt(C) where it is left out.
    """
    seen: dict[str, Tensor] = {}

    def record(name: str, value: Tensor) -> Tensor:
        seen[name] = value
        return value

    free = BoundMask(dense=torch.ones(1, 1, len(q_LC), len(k_SC), dtype=torch.bool), is_causal=False)
    scale = 1 / math.sqrt(q_LC.shape[-1]) if scale is None else scale
    operands = Operands(mask=PLAIN_CAUSAL if causal else free, scale=scale, tap=record)
    mixed = eager(q_LC[None, None], KeysValues(k_SC[None, None], v_SC[None, None]), operands)
    return mixed[0, 0], seen["pattern"][0, 0]


def numbers(x_N: Tensor, digits: int = 4) -> str:
    """Return a vector as text."""
    return "[" + ", ".join(f"{value:.{digits}g}" for value in x_N.tolist()) + "]"


def largest(difference: Tensor) -> str:
    """Return the largest size of a difference, to one digit."""
    return f"{difference.detach().abs().max().item():.0e}"


def context() -> Context:
    """Return the state of a call of one block alone: no positions, the past visible, nothing cached."""
    return Context(
        positions={"none": NO_POSITION},
        masks={"causal": PLAIN_CAUSAL},
        cache=UNCACHED,
        kernel=eager,
        layer=Layer(0, "blocks.0", UNCACHED),
    )


def built(spec: ModuleSpec, width: int, seed: int = 0) -> Any:
    """Return a part of this width in float64, its weights as torch draws them from the seed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return spec.build(width).double()
