"""Tiny random models that see, in folders as transformers writes them, and pictures of every kind."""

from pathlib import Path
from typing import Any

import numpy as np
import transformers
from PIL import Image

from tests.parity import oracle, pipelines

SIDE = 16
VIT = {
    "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "image_size": SIDE,
    "patch_size": 4,
}  # fmt: skip
MODES = ("RGB", "L", "RGBA", "P", "CMYK", "LA", "1")


def picture(mode: str = "RGB", size: tuple[int, int] = (20, 30), seed: int = 0) -> Image.Image:
    """Return a picture of random pixels, rows and columns as given."""
    rng = np.random.default_rng(seed)
    found = Image.fromarray(rng.integers(0, 256, (*size, 3), dtype=np.uint8))
    if mode == "RGBA":
        found.putalpha(Image.fromarray(rng.integers(0, 256, size, dtype=np.uint8)))
        return found
    return found.convert(mode)


def processor(place: Path, **settings: Any) -> Any:
    """Write preprocessor_config.json, and return the processor that computes with Pillow."""
    found = transformers.ViTImageProcessorPil(size={"height": SIDE, "width": SIDE}, **settings)
    found.save_pretrained(place)
    return found


def seeing(place: Path, architecture: str, seed: int = 0, **config: Any) -> tuple[Any, Any]:
    """Write a random ViT, and return it with its processor."""
    kind = getattr(transformers, architecture)
    model = kind(transformers.ViTConfig(**{**VIT, **config})).eval()
    oracle.randomise(model, seed)
    model.save_pretrained(place)
    return model, processor(place)


def captioner(place: Path, seed: int = 0, **decoder: Any) -> tuple[Any, Any, Any]:
    """Write a random ViT with GPT-2, and return it with its tokenizer and its processor."""
    made = pipelines.stored("bytes")
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=made, **pipelines.GPT2)
    tokenizer.save_pretrained(place)
    end, pad = tokenizer.eos_token_id, tokenizer.pad_token_id
    writer = transformers.GPT2Config(
        vocab_size=made.get_vocab_size(), n_embd=32, n_layer=2, n_head=4, n_positions=48, bos_token_id=end,
        eos_token_id=end, pad_token_id=pad, **decoder,
    )  # fmt: skip
    config = transformers.VisionEncoderDecoderConfig.from_encoder_decoder_configs(
        transformers.ViTConfig(**VIT), writer, decoder_start_token_id=end, pad_token_id=pad, eos_token_id=end
    )
    model = transformers.VisionEncoderDecoderModel(config).eval()
    oracle.randomise(model, seed)
    model.save_pretrained(place)
    return model, tokenizer, processor(place)
