"""Tiny random models that see, in folders as transformers writes them, and pictures of every kind."""

import io
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import sentencepiece
import tokenizers
import torch
import transformers
from PIL import Image
from transformers.models.siglip import tokenization_siglip

from tests.parity import oracle, pipelines

SIDE = 16
VIT = {
    "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "image_size": SIDE,
    "patch_size": 4,
}  # fmt: skip
WRITERS: dict[str, dict[str, Any]] = {
    "GPT2": {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 48},
    "Bert": {
        "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48,
        "max_position_embeddings": 48,
    },
    "TrOCR": {
        "d_model": 48, "decoder_layers": 2, "decoder_attention_heads": 4, "decoder_ffn_dim": 32,
        "max_position_embeddings": 48,
    },
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


def captioner(
    place: Path, seed: int = 0, sides: tuple[str, str] = ("ViT", "GPT2"), **decoder: Any
) -> tuple[Any, Any, Any]:
    """Write what sees and what writes, random ones, and return it with its tokenizer and its processor."""
    made = pipelines.stored("bytes")
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=made, **pipelines.GPT2)
    tokenizer.save_pretrained(place)
    end, pad = tokenizer.eos_token_id, tokenizer.pad_token_id
    control = {"vocab_size": made.get_vocab_size(), "bos_token_id": end, "eos_token_id": end, "pad_token_id": pad}
    sees, writes = sides
    writer = getattr(transformers, f"{writes}Config")(**WRITERS[writes], **control, **decoder)
    config = transformers.VisionEncoderDecoderConfig.from_encoder_decoder_configs(
        getattr(transformers, f"{sees}Config")(**VIT), writer, decoder_start_token_id=end, pad_token_id=pad,
        eos_token_id=end,
    )  # fmt: skip
    model = transformers.VisionEncoderDecoderModel(config).eval()
    oracle.randomise(model, seed)
    model.save_pretrained(place)
    return model, tokenizer, processor(place)


def contrasted(place: Path, seed: int = 0, **processing: Any) -> tuple[Any, Any, Any]:
    """Write a random CLIP, and return it with its tokenizer and its processor."""
    letters = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    merges = [("c", "a"), ("ca", "t</w>"), ("d", "o"), ("do", "g</w>"), ("o", "f</w>")]
    words = [*letters, *(f"{letter}</w>" for letter in letters), *("".join(pair) for pair in merges)]
    ends = ("<|startoftext|>", "<|endoftext|>")
    tokenizer = transformers.CLIPTokenizer(vocab={w: n for n, w in enumerate([*words, *ends])}, merges=merges)
    tokenizer.save_pretrained(place)
    start, end = (tokenizer.convert_tokens_to_ids(token) for token in ends)
    body = {"num_hidden_layers": 2, "num_attention_heads": 4, "hidden_size": 32, "intermediate_size": 48}
    texts = {**body, "vocab_size": len(tokenizer), "bos_token_id": start, "eos_token_id": end, "pad_token_id": end}
    config = transformers.CLIPConfig(
        text_config={**texts, "max_position_embeddings": 40}, projection_dim=24,
        vision_config={**body, "image_size": SIDE, "patch_size": 4},
    )  # fmt: skip
    model = transformers.CLIPModel(config).eval()
    oracle.randomise(model, seed)
    model.save_pretrained(place)
    sizes = {"size": {"shortest_edge": SIDE}, "crop_size": {"height": SIDE, "width": SIDE}, **processing}
    made = transformers.CLIPImageProcessorPil(**sizes)
    made.save_pretrained(place)
    return model, tokenizer, made


def canonical_tokenizer(place: Path) -> Any:
    """Write a small SentencePiece model as SigLIP's files have it, and return the tokenizer over it."""
    lines = [
        "this is a photo of a cat",
        "two dogs and cats on a sofa",
        "it is 20 of them",
        "b e j k l m q r u v w x y z",
    ]
    made = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines * 20), model_writer=made, vocab_size=80, hard_vocab_limit=False, minloglevel=3,
        pad_id=0, eos_id=1, unk_id=2, bos_id=-1,
    )  # fmt: skip
    file = place / "spiece.model"
    file.write_bytes(made.getvalue())
    with patch.object(tokenization_siglip, "requires_backends"):  # it asks for protobuf, and does not need it
        tokenizer = transformers.SiglipTokenizer(str(file), model_input_names=["input_ids"])
    tokenizer.save_pretrained(place)
    return tokenizer


def paired(place: Path, seed: int = 0) -> tuple[Any, Any, Any]:
    """Write a random SigLIP, and return it with its tokenizer and its processor."""
    tokenizer = canonical_tokenizer(place)
    body = {"num_hidden_layers": 2, "num_attention_heads": 4, "hidden_size": 32, "intermediate_size": 48}
    config = transformers.SiglipConfig(
        text_config={**body, "vocab_size": len(tokenizer), "bos_token_id": None, "eos_token_id": 1},
        vision_config={**body, "image_size": SIDE, "patch_size": 4},
    )
    model = transformers.SiglipModel(config).eval()
    oracle.randomise(model, seed)
    model.save_pretrained(place)
    made = transformers.SiglipImageProcessorPil(size={"height": SIDE, "width": SIDE})
    made.save_pretrained(place)
    return model, tokenizer, made


def blip(place: Path, seed: int = 2) -> tuple[Any, Any, Any]:
    """Write a random BLIP as it is published, and return it with its tokenizer and its processor.

    The tokenizer is BERT's: it knows no token that a caption begins with, which is the first one behind it.
    """
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"word{n}" for n in range(40))]
    (place / "vocab.txt").write_text("\n".join(words))
    tokenizer = transformers.BertTokenizerFast(str(place / "vocab.txt"))
    tokenizer.save_pretrained(place)
    ids = {"bos_token_id": len(words), "sep_token_id": words.index("[SEP]"), "eos_token_id": 2, "pad_token_id": 0}
    text = {**WRITERS["Bert"], **ids, "vocab_size": len(words) + 2, "tie_word_embeddings": False}
    config = transformers.BlipConfig(
        text_config=text, vision_config={**VIT, "hidden_size": 24}, tie_word_embeddings=False
    )
    model = transformers.BlipForConditionalGeneration(config).eval()
    oracle.randomise(model, seed)
    with torch.no_grad():  # so that the picture counts
        for layer in model.text_decoder.bert.encoder.layer:
            layer.crossattention.output.dense.weight *= 6
    model.save_pretrained(place)
    prepares = transformers.BlipImageProcessorPil(size={"height": SIDE, "width": SIDE})
    prepares.save_pretrained(place)
    return model, tokenizer, prepares
