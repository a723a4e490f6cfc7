"""The models that the laws are tried on: tiny, one a family, random in every parameter."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, cast

import torch
from torch import Tensor

from orrery.families import load_family
from orrery.models.decoder import Decoder
from orrery.nn.attention.kernels import Kernel, eager, sdpa
from orrery.nn.attention.materialised import materialised

VOCABULARY = 61
KERNELS: Mapping[str, Kernel] = {"eager": eager, "sdpa": sdpa, "materialised": materialised}
"""Every way to compute attention, the definition first."""

CONFIGS: Mapping[str, Mapping[str, Any]] = {
    "gpt2": {"vocab_size": VOCABULARY, "n_positions": 48, "n_embd": 24, "n_layer": 2, "n_head": 3},
    "llama": {
        "vocab_size": VOCABULARY,
        "hidden_size": 24,
        "intermediate_size": 40,
        "num_hidden_layers": 2,
        "num_attention_heads": 6,
        "num_key_value_heads": 2,
        "max_position_embeddings": 48,
    },
}
"""A configuration a family; together they cover both norms, grouped heads, and positions added and turned."""


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
