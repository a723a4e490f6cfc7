"""Models of known shapes with random weights, so that speed can be measured without a download."""

import json
from collections.abc import Callable, Mapping
from itertools import islice, product
from pathlib import Path
from typing import Any

import torch
from tokenizers import pre_tokenizers

from orrery.errors import UsageError
from orrery.exchange.reading.gguf_model import is_gguf
from orrery.exchange.saving.save import save_model
from orrery.families import load_family
from orrery.models.initialise import initialise
from orrery.text.tokenizer import Tokenizer

_TINY = {"n_embd": 32, "n_layer": 2, "n_head": 2, "n_positions": 128, "vocab_size": 300}
_LLAMA = {
    "vocab_size": 32_000,
    "hidden_size": 1024,
    "intermediate_size": 4096,
    "num_hidden_layers": 24,
    "num_attention_heads": 16,
    "num_key_value_heads": 4,
    "max_position_embeddings": 2048,
    "tie_word_embeddings": False,
}
SHAPES: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "gpt2-124m": ("gpt2", {"vocab_size": 50_257, "n_positions": 1024}),
    "gpt2-355m": ("gpt2", {"vocab_size": 50_257, "n_positions": 1024, "n_embd": 1024, "n_layer": 24, "n_head": 16}),
    "llama-430m": ("llama", _LLAMA),
    "gpt2-tiny": ("gpt2", _TINY),
}
"""Family and configuration by name; the tiny one shows what a benchmark prints, and its numbers mean nothing."""

END = "<|endoftext|>"


def check_model(name: str) -> None:
    """Refuse a name that is neither a folder nor a GGUF file nor a shape.

    Raises:
        UsageError: it is none of them.
    """
    if name not in SHAPES and not Path(name).is_dir() and not is_gguf(name):
        message = f"no model folder, no GGUF file and no shape {name!r}"
        raise UsageError(message, f"shapes: {', '.join(SHAPES)}; or give a folder or a file")


def make_model(name: str, folder: Path, dtype: torch.dtype, say: Callable[[str], None]) -> Path:
    """Write a model of a shape with random weights into a folder, in the Hugging Face layout."""
    family, config = SHAPES[name]
    say(f"a {name} with random weights")
    model = load_family(family).spec(config).build().eval()
    initialise(model, depth=len(model.stack.blocks), seed=1)
    save_model(folder, model.to(dtype), family, config, placeholder_tokenizer(config["vocab_size"]))
    return folder


def placeholder_tokenizer(size: int) -> Tokenizer:
    """Return a byte-level BPE of exactly ``size`` ids, which every engine reads: bytes, and pairs of bytes merged."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    pairs = list(islice(product(letters, letters), size - len(letters) - 1))
    pieces = [*letters, *(a + b for a, b in pairs), END]
    definition = {
        "version": "1.0",
        "added_tokens": [
            {
                "id": size - 1,
                "content": END,
                "special": True,
                "normalized": False,
                "single_word": False,
                "lstrip": False,
                "rstrip": False,
            }
        ],
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        "model": {
            "type": "BPE",
            "vocab": {piece: id for id, piece in enumerate(pieces)},
            "merges": [f"{a} {b}" for a, b in pairs],
        },
    }
    return Tokenizer(json.dumps(definition), {"end": END})
