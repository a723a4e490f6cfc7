"""What is pre-training worth? An encoder from its pre-trained and from fresh weights, by the number of labels.

    OMP_NUM_THREADS=1 torchrun --nproc-per-node 2 -m orrery train recipes/pretrain-sst2.yaml
    .venv/bin/python benchmarks/pretraining_gain.py runs/pretrain-sst2 --output benchmarks/pretraining_gain.json

Both models have the same shape and the same pieces, learn from the same rows of SST-2 for as many steps in the same
order, and are scored on its dev set after the last step. Only the rate differs: each has what ``orrery finetune`` finds
for it. A seed draws the rows, the fresh weights and the order. ``--figure`` draws the means.
"""

import itertools
import json
import random
import statistics
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from _record import Record, parsed, parser

import orrery
from orrery.data.corpora import read_rows
from orrery.reports.figures import line_chart

TRAIN, DEV = "sst2/train", "sst2/dev"
STEPS = {100: 200, 1000: 500, None: 1500}
"""By the number of labels; None stands for all of them."""
WAYS = {"pre-trained": False, "from fresh weights": True}
REGULAR = {"model": {"dropout": 0.3}, "objective": {"word_dropout": 0.2, "label_smoothing": 0.1}}
"""Against learning the few rows by heart; the same for both."""


def sentences(named: str) -> list[dict[str, str]]:
    """Return the rows of a part of SST-2, which has no line of names."""
    return [{"text": str(row["1"]), "label": str(row["2"])} for row in read_rows(named, ["1", "2"])]


def written(rows: Iterable[Mapping[str, str]], file: Path) -> Path:
    """Write rows as JSON lines."""
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return file


def fresh(folder: Path) -> Path:
    """Save a tiny encoder that has learnt nothing, for the small form."""
    from orrery.exchange.saving.save import save_model
    from orrery.families import load_family
    from orrery.text.special import train_framed

    texts = [row["text"] for row in itertools.islice(sentences(TRAIN), 200)]
    tokenizer = train_framed("wordpiece", texts, vocabulary=400, lowercase=True, frame="bert")
    config = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 64}
    config |= {"max_position_embeddings": 128, "vocab_size": tokenizer.size}
    save_model(folder, load_family("bert").spec(config).build(1), "bert", config, tokenizer)
    return folder


def measured(model: Path, seeds: Sequence[int], steps_of: Mapping[int | None, int]) -> Iterable[dict[str, Any]]:
    """Yield the accuracy of each way, for each number of labels and each seed."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        train, dev = sentences(TRAIN), written(sentences(DEV), folder / "dev.jsonl")
        for (count, steps), seed in itertools.product(steps_of.items(), seeds):
            chosen = random.Random(seed).sample(train, count or len(train))
            file, labels = written(chosen, folder / "train.jsonl"), len(chosen)
            for way, scratch in WAYS.items():
                recipe = {
                    "seed": seed,
                    **REGULAR,
                    "training": {"steps": steps, "final": "last"},
                    "evaluation": {"every": steps},
                    "checkpoints": {"every": steps},
                }
                done = orrery.finetune(
                    "classification", model, file, dev, scratch=scratch, recipe=recipe, output=folder / "run",
                    overwrite=True, quiet=True,
                )  # fmt: skip
                score = done.findings[0].main.score
                print(f"{labels:,} labels, seed {seed}, {way}: {score:.4f}", flush=True)
                yield {"labels": labels, "steps": steps, "seed": seed, "way": way, "accuracy": score}


def drawn(measurements: Iterable[Mapping[str, Any]]) -> str:
    """Return the means over the seeds as a figure."""
    runs = list(measurements)
    curves = {
        way: [
            (labels, statistics.mean(run["accuracy"] for run in runs if (run["labels"], run["way"]) == (labels, way)))
            for labels in sorted({run["labels"] for run in runs})
        ]
        for way in WAYS
    }
    return line_chart(
        curves, title="What pre-training is worth on SST-2", x_label="labelled sentences", y_label="accuracy",
        log_x=True,
    )  # fmt: skip


def main() -> None:
    """Measure, print, and keep."""
    made = parser(__doc__)
    made.add_argument("model", type=Path, nargs="?", help="the run of the pre-trained encoder")
    made.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    made.add_argument("--labels", type=int, nargs="+", default=[0 if n is None else n for n in STEPS], help="0: all")
    made.add_argument("--steps", type=int, help="in the place of those that belong to the number of labels")
    made.add_argument("--figure", type=Path, help="an SVG file")
    options = parsed(made, {"seeds": [1, 2], "labels": [100], "steps": 2}, needs=["model"])
    record = Record(options)
    with tempfile.TemporaryDirectory() as place:
        model = options.model or fresh(Path(place) / "fresh")
        steps = {n or None: options.steps or STEPS[n or None] for n in options.labels}
        measurements = list(measured(model, options.seeds, steps))
    record.write({"ways": list(WAYS), "runs": measurements})
    if options.figure:
        options.figure.write_text(drawn(measurements) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
