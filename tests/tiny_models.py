"""Tiny models with every parameter random, a tokenizer, and their saved folder."""

from pathlib import Path
from typing import TypeVar

import torch
from torch import nn

from orrery.data.pictures.preparing import for_size
from orrery.exchange.saving.save import save_model
from orrery.families import load_family
from orrery.models.decoder import Decoder
from orrery.nn.inputs import Images
from orrery.text.train import train_tokenizer

Model = TypeVar("Model", bound=nn.Module)
TEXT = "the cat sat on the mat, the dog sat on the log; äöü 日本 🙂\n"
TOKENIZER = train_tokenizer("byte_bpe", [TEXT] * 3, 290)
CONFIGS = {
    "gpt2": {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 48, "vocab_size": TOKENIZER.size},
    "llama": {
        "hidden_size": 32,
        "intermediate_size": 56,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 48,
        "vocab_size": TOKENIZER.size,
    },
}
"""Families that transformers has too."""

ENCODERS = {
    "bert": {
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "max_position_embeddings": 48,
        "vocab_size": TOKENIZER.size,
    }
}
OWN = {"rnnsearch": {"hidden_size": 12, "max_position_embeddings": 48, "vocab_size": TOKENIZER.size}}
SEEING = {
    "vision-encoder-decoder": {
        "encoder": {
            "model_type": "vit", "hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 2,
            "num_attention_heads": 3, "image_size": 12, "patch_size": 4,
        },
        "decoder": {"model_type": "gpt2", "is_decoder": True, "add_cross_attention": True, **CONFIGS["gpt2"]},
        "decoder_start_token_id": 1,
    }
}  # fmt: skip
ALL = CONFIGS | ENCODERS | OWN | SEEING


def tiny(family: str, dtype: torch.dtype = torch.float64, **config) -> Decoder:
    """Return a model of this family, random in every parameter, in eval mode."""
    return randomised(load_family(family).spec({**ALL[family], **config}).build(0).to(dtype).eval())


def smallest(family: str, dtype: torch.dtype = torch.float64, seed: int = 0) -> Model:
    """Return the smallest model of any family that the laws know, random in every parameter, in eval mode."""
    rules = load_family(family)
    return randomised(rules.spec(rules.TINY).build(0).to(dtype).eval(), seed)


def randomised(model: Model, seed: int = 0) -> Model:
    """Return the model with every parameter drawn again."""
    rng = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=rng, dtype=torch.float64) * 0.3)
    return model


def saved(folder: Path, family: str, dtype: torch.dtype = torch.float32, **config) -> Path:
    """Save a tiny model and return its folder."""
    save_model(folder, tiny(family, dtype, **config), family, {**ALL[family], **config}, TOKENIZER)
    return folder


def inputs_for(model: nn.Module, rows: int = 2, length: int = 7, source: int = 9, seed: int = 0) -> list[torch.Tensor]:
    """Return random tokens, and images where a model reads them, in the order in which it takes them."""
    rng = torch.Generator().manual_seed(seed)
    like, inputs = next(model.parameters()), []
    for name, read in model.spec.inputs.items():
        if isinstance(read, Images):
            inputs.append(torch.randn(rows, *read.shape, generator=rng, dtype=torch.float64).to(like.dtype))
        else:
            inputs.append(torch.randint(read.vocabulary, (rows, length if name == "ids" else source), generator=rng))
            end = getattr(getattr(model.spec, "reads", model.spec), "end", None)
            if end is not None:  # its head reads a row where that token stands, here at the last place
                inputs[-1][inputs[-1] == end.token] = 0
                inputs[-1][:, -1] = end.token
    return inputs


def prepared_for(model):
    """What a folder of a model that reads pictures says of how they are prepared; of another model nothing."""
    read = next((each for each in model.spec.inputs.values() if isinstance(each, Images)), None)
    return None if read is None else dict(for_size(read.rows, read.columns, read.channels).content)
