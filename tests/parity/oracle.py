"""The reference models: tiny, random in every parameter, and computing wholly in float64 where asked."""

import logging
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import ModuleType
from typing import Any
from unittest.mock import patch

import torch
import transformers
from torch import nn
from transformers import modeling_rope_utils

logging.getLogger("transformers").setLevel(logging.ERROR)

TINY = {"vocab_size": 97, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}


class _Wide:
    """``torch`` with float64 in the place of float32."""

    def __getattr__(self, name: str) -> Any:
        return torch.float64 if name in ("float32", "float") else getattr(torch, name)


@contextmanager
def widened(modelling: ModuleType) -> Iterator[None]:
    """Replace the casts to float32 inside the reference (norm, softmax, rotary table) by casts to float64."""
    wide = _Wide()
    with ExitStack() as stack:
        for module in (modelling, modeling_rope_utils):
            stack.enter_context(patch.object(module, "torch", wide))
        stack.enter_context(patch.object(torch.Tensor, "float", torch.Tensor.double))
        yield


def randomise(model: nn.Module, seed: int, std: float = 0.3) -> None:
    """Draw every parameter anew, norms and biases too: a default initialisation hides swapped norms and lost biases."""
    rng = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=rng, dtype=torch.float64) * std)


def reference(kind: str, seed: int, dtype: torch.dtype, **config: Any) -> nn.Module:
    """Return a random reference model, its ``model_type`` as transformers spells it, with the eager kernel."""
    settings = transformers.AutoConfig.for_model(kind, **{**TINY, **config})
    model = transformers.AutoModelForCausalLM.from_config(settings, attn_implementation="eager", dtype=dtype)
    randomise(model, seed)
    return model.to(dtype).eval()


def modelling(kind: str) -> ModuleType:
    """Return the module that defines a family's reference."""
    name = f"transformers.models.{kind}.modeling_{kind}"
    return __import__(name, fromlist=["torch"])
