"""The reference models: tiny, random in every parameter, and computing wholly in float64 where asked."""

import logging
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from copy import deepcopy
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FunctionType, ModuleType
from typing import Any, ClassVar
from unittest.mock import patch

import torch
import transformers
from safetensors.torch import load_file
from torch import Tensor, nn
from transformers import modeling_rope_utils

from orrery.families import model_type, names
from tests.parity.stand_ins import STAND_INS, class_of, settings_of

logging.getLogger("transformers").setLevel(logging.ERROR)
transformers.utils.logging.disable_progress_bar()

REFERENCED = {name for name in names() if model_type(name) in transformers.CONFIG_MAPPING}
"""The families that transformers has too; the files of the others are our own."""

TINY = {"vocab_size": 97, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}


class _Wide:
    """``torch`` with float64 in the place of float32."""

    replaced: ClassVar = {"float32": torch.float64, "float": torch.float64, "FloatTensor": torch.DoubleTensor}

    def __getattr__(self, name: str) -> Any:
        return self.replaced[name] if name in self.replaced else getattr(torch, name)


@contextmanager
def widened(*modules: ModuleType) -> Iterator[None]:
    """Replace the casts to float32 inside the reference (norm, softmax, rotary table) by casts to float64.

    What is float32 because nothing else was said, as the quotient of two whole numbers, is float64 too.
    """
    wide, usual = _Wide(), torch.get_default_dtype()
    with ExitStack() as stack:
        stack.callback(torch.set_default_dtype, usual)
        torch.set_default_dtype(torch.float64)
        for module in (*modules, modeling_rope_utils):
            stack.enter_context(patch.object(module, "torch", wide))
        for function in _functions(*modules):
            given = function.__defaults__ or ()
            if torch.float32 in given:
                exact = tuple(torch.float64 if value is torch.float32 else value for value in given)
                stack.enter_context(patch.object(function, "__defaults__", exact))
        stack.enter_context(patch.object(torch.Tensor, "float", torch.Tensor.double))
        yield


def _functions(*modules: ModuleType) -> Iterator[FunctionType]:
    """Yield the functions of modules and of the classes that they define, whose signatures may name a dtype too."""
    for module in modules:
        for part in vars(module).values():
            parts = vars(part).values() if isinstance(part, type) and part.__module__ == module.__name__ else [part]
            yield from (one for one in parts if isinstance(one, FunctionType) and one.__module__ == module.__name__)


def randomise(model: nn.Module, seed: int, std: float = 0.3) -> None:
    """Draw every parameter again, norms and biases too: a default initialisation hides swapped norms and lost biases.

    Buffers that are saved with the weights (routing corrections, BART's last bias) are weights too; a frozen parameter
    is a formula (sinusoids) and stays.
    """
    rng = torch.Generator().manual_seed(seed)
    saved = set(model.state_dict())
    weights = [p for p in model.parameters() if p.requires_grad]
    weights += [b for n, b in model.named_buffers() if n in saved and b.is_floating_point()]
    with torch.no_grad():
        for weight in weights:
            weight.copy_(torch.randn(weight.shape, generator=rng, dtype=torch.float64) * std)
        for name, variance in model.named_buffers():
            if name.endswith("running_var"):
                variance.abs_()
        for module in model.modules():  # BERT's untied head has a second bias that no forward pass reads: ours is both
            if hasattr(module, "decoder") and isinstance(getattr(module, "bias", None), nn.Parameter):
                module.bias.copy_(module.decoder.bias)


def reference(
    kind: str,
    seed: int,
    dtype: torch.dtype,
    *,
    auto: str = "AutoModelForCausalLM",
    kernel: str = "eager",
    **config: Any,
) -> Any:
    """Return a random reference model, its ``model_type`` as transformers spells it.

    ``auto`` is the transformers class that makes it: AutoModelForMaskedLM, AutoModelForSeq2SeqLM, BertModel, ...;
    ``kernel`` its attention's.
    """
    settings = settings_of(kind, **{**TINY, **config})
    make = STAND_INS.get(kind) or class_of(auto)
    make = make.from_config if make.__name__.startswith("Auto") else make._from_config
    # Experts in a plain loop: the reference's grouped product knows no float64.
    model = make(settings, attn_implementation=kernel, experts_implementation="eager", dtype=dtype)
    randomise(model, seed)
    return model.to(dtype).eval()


def modelling(kind: str) -> ModuleType:
    """Return the module that defines a family's reference."""
    if kind in STAND_INS:
        return sys.modules[STAND_INS[kind].__base__.__module__]
    name = "openai" if kind == "openai-gpt" else kind.replace("-", "_")
    name = next((whole for whole in ("clip", "siglip") if name.startswith(f"{whole}_")), name)
    name = f"transformers.models.{name.removesuffix('_text')}.modeling_{name.removesuffix('_text')}"
    return __import__(name, fromlist=["torch"])


def file_of(model: Any) -> dict[str, Tensor]:
    """Return the tensors that the reference writes into its file: their names may differ from those in memory."""
    with TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        return load_file(Path(folder) / "model.safetensors")


def gradients_of(model: Any) -> dict[str, Tensor]:
    """Return the gradients under the names of the file: they are written as if they were the weights.

    RecurrentGemma's modules keep the states of a pass, which cannot be copied as long as they hang on it.
    """
    for module in model.modules():
        for name, value in vars(module).items():
            if isinstance(value, Tensor):
                setattr(module, name, value.detach())
    copy = deepcopy(model)
    with torch.no_grad():
        for target, source in zip(copy.parameters(), model.parameters(), strict=True):
            target.copy_(torch.zeros_like(source) if source.grad is None else source.grad)
    return file_of(copy)
