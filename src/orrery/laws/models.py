"""The models that the laws are tried on: tiny, one a family, random in every parameter."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, cast

import torch
from torch import Tensor

from orrery.families import load_family, names
from orrery.models.decoder import Decoder
from orrery.nn.attention.kernels import Kernel, eager, sdpa
from orrery.nn.attention.materialised import materialised

VOCABULARY = 61
KERNELS: Mapping[str, Kernel] = {"eager": eager, "sdpa": sdpa, "materialised": materialised}
"""Every way to compute attention, the definition first."""

CONFIGS: Mapping[str, Mapping[str, Any]] = {name: load_family(name).TINY for name in names()}
"""The tiny configuration that each family file brings."""


@lru_cache(maxsize=32)
def tiny(family: str, dtype: torch.dtype = torch.float64) -> Decoder:
    """Return the family's tiny model in evaluation mode; norms and biases are random too, so none can hide."""
    model = cast(Decoder, load_family(family).spec(CONFIGS[family]).build(0)).to(dtype).eval()
    rng = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(0.3 * torch.randn(parameter.shape, generator=rng, dtype=torch.float64))
    return model


def random_ids(*shape: int, seed: int = 1) -> Tensor:
    """Return random token numbers."""
    return torch.randint(VOCABULARY, shape, generator=torch.Generator().manual_seed(seed))
