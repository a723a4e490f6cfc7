"""Pictures: a training step of a small ViT beside transformers' Trainer, and pictures classified a second.

    .venv/bin/python benchmarks/picture_speed.py --output benchmarks/picture_speed.json

The ViT is that of recipes/mnist.yaml with three channels, which transformers' pipeline wants, on pictures of 28 x 28.
``step`` is one on a batch of 128 with the same optimizer, rate and clipping: our recipe without its changes of
pictures, and Trainer over the numbers that its own processor made before the clock started; in float32, and under
autocast to bfloat16 where the processor multiplies it, each as it is and compiled (``parallel.compile``,
``torch_compile``).
``classified`` asks ``orrery.pipeline`` and ``transformers.pipeline`` for opened pictures, in batches of 128. The
programs take turns; a ratio is the median over rounds of the ratio within a round.
"""

import json
import logging
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import transformers
import yaml
from _record import Record, parsed, parser
from finetuning import Timed, compare, ours, theirs
from PIL import Image

import orrery
from orrery.data.rows.pictures import read_pictures
from orrery.kernels.processor import this_processor
from orrery.training.precision import has_bfloat16

RECIPE = yaml.safe_load((Path(__file__).parents[1] / "recipes/mnist.yaml").read_text())
BATCH = RECIPE["batches"]["size"]
PREPARED = {"size": {"height": 28, "width": 28}, "image_mean": [0.5] * 3, "image_std": [0.5] * 3}
Answering = Callable[[], float]
"""A run that classifies all pictures, and returns how many a second."""


def fresh(folder: Path) -> Path:
    """Write a ViT with fresh weights and ten labels as transformers does, and return its folder."""
    labels = [str(number) for number in range(10)]
    config = transformers.ViTConfig(**RECIPE["model"]["config"] | {"num_channels": 3}, num_labels=len(labels))
    config.id2label, config.label2id = dict(enumerate(labels)), {label: at for at, label in enumerate(labels)}
    torch.manual_seed(1)
    transformers.ViTForImageClassification(config).save_pretrained(folder / "vit")
    transformers.ViTImageProcessorPil(**PREPARED).save_pretrained(folder / "vit")
    return folder / "vit"


def opened(part: str) -> tuple[list[Any], list[int]]:
    """Return pictures in colour as a user's program has them, and their labels."""
    rows = list(read_pictures(part))
    pictures = [Image.fromarray(row.pixels()[0].numpy()).convert("RGB") for row in rows]
    return pictures, [int(row.target) for row in rows]


def stepping(model: Path, folder: Path) -> dict[str, dict[str, Timed]]:
    """What is compared of training, by its kind: steps a second from the same weights."""
    values: dict[str, Any] = {
        "model": {"from": str(model)},
        "task": "image_classification",
        "data": RECIPE["data"] | {"augment": {}},
        "batches": {"size": BATCH},
        "objective": "classification",
    }
    pictures, labels = opened(RECIPE["data"]["train"])
    numbers = transformers.ViTImageProcessorPil.from_pretrained(model)(pictures, return_tensors="pt")["pixel_values"]
    rows = [{"pixel_values": one, "labels": label} for one, label in zip(numbers, labels, strict=True)]

    def make() -> Any:
        return transformers.AutoModelForImageClassification.from_pretrained(model)

    def pair(precision: str, compiled: bool) -> dict[str, Timed]:
        asked = values | {"training": {"precision": precision}, "parallel": {"compile": compiled}}
        more = {"bf16": precision == "bfloat16", "torch_compile": compiled}
        collate = transformers.default_data_collator
        peer = theirs(make, rows, collate, "random", folder / "peer", BATCH, **more)
        return {"orrery": ours(asked, folder / "ours"), "Trainer": peer}

    precisions = ("float32", "bfloat16") if has_bfloat16("cpu", this_processor()) else ("float32",)
    return {
        f"{precision}{', compiled' if compiled else ''}": pair(precision, compiled)
        for precision in precisions
        for compiled in (False, True)
    }


def classifying(model: Path, part: str) -> dict[str, Answering]:
    """What is compared of answers: pictures a second."""
    pictures, _ = opened(part)

    def counted(ask: Any) -> Answering:
        def run() -> float:
            began = time.perf_counter()
            answers = list(ask(pictures, batch_size=BATCH))
            assert len(answers) == len(pictures)
            return len(pictures) / (time.perf_counter() - began)

        return run

    peer = transformers.pipeline("image-classification", str(model), device="cpu")
    return {
        "orrery": counted(orrery.pipeline("image-classification", str(model), device="cpu")),
        "transformers": counted(peer),
    }


def in_turn(runs: dict[str, Answering], rounds: int) -> dict[str, Any]:
    """Let them take turns; the first round warms up."""
    rates: dict[str, list[float]] = {name: [] for name in runs}
    for number in range(rounds + 1):
        for name in list(runs)[:: 1 if number % 2 else -1]:
            rate = runs[name]()
            if number:
                rates[name].append(rate)
            print(f"round {number} {name}: {rate:.0f} pictures/s", file=sys.stderr)
    ratio = statistics.median(a / b for a, b in zip(*rates.values(), strict=True))
    return {"pictures per second": {name: statistics.median(all) for name, all in rates.items()}, "ratio": ratio}


def main() -> None:
    """Compare, print, and keep."""
    made = parser(__doc__)
    made.add_argument("--steps", type=int, default=110)
    made.add_argument("--rounds", type=int, default=5)
    made.add_argument("--pictures", default="mnist-10k[7000:]", help="what is classified")
    options = parsed(made, {"steps": 13, "rounds": 1, "pictures": "mnist-10k[7960:]"})
    record = Record(options, ("transformers", "accelerate", "pillow"))
    logging.disable(logging.WARNING)
    transformers.utils.logging.set_verbosity_error()
    result: dict[str, Any] = {"steps": options.steps, "rounds": options.rounds, "batch": BATCH}
    with tempfile.TemporaryDirectory() as place:
        model = fresh(Path(place))
        for kind, runs in stepping(model, Path(place)).items():
            found = compare(runs, options.steps, options.rounds)
            result.setdefault("step", {})[kind] = {key: found[key] for key in ("steps per second", "ratios")}
        result["classified"] = in_turn(classifying(model, options.pictures), options.rounds)
    print(json.dumps(result, indent=1))
    record.write(result)


if __name__ == "__main__":
    main()
