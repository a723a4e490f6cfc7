"""Pictures of digits, drawn here, and the recipes that learn from them in seconds: with labels, without, and few."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

SIDE = 16
"""Pixels of a picture."""
_CONFIG = {
    "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64,
    "image_size": SIDE, "patch_size": 4, "num_channels": 1, "initializer_range": 0.05,
}  # fmt: skip


def write_digits(folder: Path, digits: Sequence[int], each: int, seed: int = 0) -> Path:
    """Write so many pictures of each thing, in a folder of its own name, and return the folder; 10 to 13 are shapes."""
    from orrery.data.generated._drawing import THINGS

    for digit in digits:
        for number in range(each):
            _write(folder / str(digit) / f"{number}.png", list(THINGS)[digit], [seed, digit, number])
    return folder


def _write(file: Path, name: str, seed: Sequence[int]) -> None:
    """Draw a thing, and write it as a PNG file."""
    import numpy as np
    import torch

    from orrery.data.generated._drawing import drawn
    from orrery.data.pictures.png import write_png

    pixels = torch.from_numpy((255 * drawn(name, SIDE, np.random.default_rng(seed))).astype("uint8"))
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(write_png(pixels[None]))


def learning(
    kind: str, train: Path, steps: int, *, begin: Path | None = None, val: Path | None = None
) -> dict[str, Any]:
    """Return a recipe on a folder of digits: ``classification``, or ``autoencoder``, which needs no labels.

    Where it begins from a model, all of that stays as it is, and a new head learns alone.
    """
    named = {"kind": "pictures" if kind == "classification" else "unlabelled_pictures", "train": str(train)}
    own = {"family": "vit", "config": _CONFIG | ({} if kind == "classification" else {"architectures": ["ViTModel"]})}
    muon, adam = {"kind": "muon", "rate": 3e-3, "weight_decay": 0.05}, {"kind": "adamw", "rate": 1e-2}
    recipe: dict[str, Any] = {
        "name": kind, "seed": 1,
        "model": own if begin is None else {"from": str(begin), "freeze": ["embed.*", "stack.*"]},
        "data": named if val is None else named | {"val": str(val)},
        "batches": {"size": 32},
        "objective": kind,
        "training": {
            "steps": steps, "precision": "float32", "device": "cpu",
            "optimizer": muon if begin is None else adam, "schedule": {"kind": "cosine", "warmup": 1},
        },
        "evaluation": {"every": steps},
    }  # fmt: skip
    return recipe | ({"task": "image_classification"} if kind == "classification" else {})


def write_captions(folder: Path, each: int = 24) -> tuple[Path, Path]:
    """Write pictures of four shapes and digits with a caption each, and some new ones; return both tables."""
    names = ("one", "eight", "circle", "square")
    tables = []
    for part, count, seed in (("old", each, 0), ("new", 2, 1)):
        lines = ["file_name,caption"]
        for name in names:
            for number in range(count):
                lines.append(f"{part}/{name}-{number}.png,a picture of {_said(name)}")
                _write(folder / part / f"{name}-{number}.png", name, [seed, number, len(name), ord(name[0])])
        tables.append(folder / f"{part}.csv")
        tables[-1].write_text("\n".join(lines) + "\n", encoding="utf-8")
    return tables[0], tables[1]


def _said(name: str) -> str:
    return f"a {name}" if name in ("circle", "square") else f"the number {name}"


def captioning(train: Path, val: Path, steps: int) -> dict[str, Any]:
    """Return the recipe of a ViT that sees and a GPT-2 that writes."""
    sees = {"model_type": "vit", **_CONFIG}
    writes = {
        "model_type": "gpt2", "is_decoder": True, "add_cross_attention": True, "n_positions": 16, "n_embd": 32,
        "n_layer": 1, "n_head": 2, "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0,
    }  # fmt: skip
    return {
        "name": "captions", "task": "captioning", "seed": 1,
        "model": {"family": "vision_encoder_decoder", "config": {"encoder": sees, "decoder": writes}},
        "tokenizer": {"kind": "word"},
        "data": {"kind": "captions", "train": str(train), "val": str(val)},
        "batches": {"length": 12, "size": 32},
        "objective": {"kind": "captioning"},
        "training": {
            "steps": steps, "precision": "float32", "device": "cpu",
            "optimizer": {"kind": "muon", "rate": 3e-3, "weight_decay": 0.05},
            "schedule": {"kind": "cosine", "warmup": 5},
        },
        "evaluation": {"every": steps},
    }  # fmt: skip
