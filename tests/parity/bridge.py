"""TransformerLens on the weights of a random tiny gpt2 or llama, which both libraries read from one folder.

Nothing is downloaded. What TransformerLens computes is transformers' own forward, looked at through its hooks.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer as Engine
from tokenizers import models

from tests.parity import oracle

VOCABULARY = 61
CONFIGS = {
    "gpt2": {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 48, "vocab_size": VOCABULARY},
    "llama": {
        "hidden_size": 32,
        "intermediate_size": 56,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 48,
        "vocab_size": VOCABULARY,
    },
}
# transformers' kernels round otherwise than ours.
EXACT = 1e-12


@contextmanager
def transformer_lens() -> Iterator[Any]:
    """Give the library, and take back what importing it does to the validation of configurations everywhere."""
    from huggingface_hub import dataclasses

    validate = dataclasses._validate_simple_type
    library = pytest.importorskip("transformer_lens")
    try:
        yield library
    finally:
        dataclasses._validate_simple_type = validate


def written(place: Path, family: str = "gpt2", **parameters: float) -> Path:
    """Write the model and a tokenizer, without which TransformerLens reads nothing.

    Args:
        place: the folder.
        family: of ``CONFIGS``.
        parameters: names of parameters that are filled with one number; all others are random.
    """
    from transformers import PreTrainedTokenizerFast

    model = oracle.reference(family, 0, torch.float64, **CONFIGS[family])
    with torch.no_grad():
        for name, value in parameters.items():
            model.get_parameter(name).fill_(value)
    model.save_pretrained(place)
    words = {f"w{n}": n for n in range(VOCABULARY)}
    engine = Engine(models.WordLevel(words, unk_token="w0"))
    roles = dict.fromkeys(("unk_token", "pad_token", "bos_token", "eos_token"), "w0")
    PreTrainedTokenizerFast(tokenizer_object=engine, **roles).save_pretrained(place)
    return place


def booted(library: Any, folder: Path, **folding: bool) -> Any:
    """Return the library's model, its weights as they are unless something is to be folded."""
    model = library.TransformerBridge.boot_transformers(str(folder), device="cpu", dtype=torch.float64)
    model.enable_compatibility_mode(no_processing=not folding, **folding)
    return model


@torch.no_grad()
def looked_at(library: Any, folder: Path, ids: torch.Tensor, **folding: bool) -> SimpleNamespace:
    """Return the library's model, logits and cache of a run."""
    model = booted(library, folder, **folding)
    logits, cache = model.run_with_cache(ids)
    return SimpleNamespace(model=model, logits=logits, cache=cache)


def broken(model: torch.nn.Module, name: str, row: int) -> torch.nn.Module:
    """Return the model with one number of a parameter moved: what a comparison must notice.

    One number alone: a norm takes away what is added to a whole row.
    """
    weight = model.get_parameter(name)
    with torch.no_grad():
        weight.view(len(weight), -1)[row, 0] += 0.5
    return model
