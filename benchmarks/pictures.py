"""What models learn from pictures: classes, hidden patches, masks, boxes and captions, beside simple methods.

    .venv/bin/python benchmarks/pictures.py --keep runs/pictures --output benchmarks/pictures.json

Each training is a run of its own below ``--keep``, with its seconds, and one that is there is not made again: the
program may be stopped and started. ``--only`` names some of the parts:

- ``mnist``: recipes/mnist.yaml, and beside it logistic regression, the three nearest pictures, least squares over a
  Gaussian kernel, and a network of two layers with the recipe's own augmentation;
- ``few``: recipes/pretrain-patches.yaml without labels, then recipes/mnist-few.yaml on ten labels a digit, another
  choice of them for each seed; from fresh weights for as long as both together and as the latter alone, probes of both
  encoders, logistic regression;
- ``transfer``: recipes/things.yaml with labels, then the masks of a few scenes from its encoder and from fresh weights;
- ``masks``, ``boxes``: the recipes of scenes from fresh weights and from the encoder of ``things``; a SegFormer and a
  YOLOS as large beside them;
- ``captions``: the recipe from the encoder of ``things`` and from fresh weights, and where words looked.

Scores are of examples held back; on MNIST the last 1,000 of the 8,000. The logistic regressions are fitted by L-BFGS
with a penalty of 1e-3 on pixels from 0 to 1.
"""

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

import torch
import yaml
from _record import Record, parsed, parser
from torch.nn import functional as F

import orrery
from orrery.data.batches.order import Shuffled
from orrery.data.pictures.augmenting import Augmentation
from orrery.data.rows.pictures import read_pictures
from orrery.data.sources import SOURCES

ROOT = Path(__file__).parents[1]
RECIPES = ROOT / "recipes"
PARTS = ("mnist", "few", "transfer", "masks", "boxes", "captions")
YOLOS = {
    "hidden_size": 96, "num_hidden_layers": 4, "num_attention_heads": 3, "intermediate_size": 192,
    "image_size": [48, 48], "patch_size": 6, "num_channels": 3, "num_detection_tokens": 12,
    "initializer_range": 0.05,
}  # fmt: skip
SEGFORMER = {
    "num_encoder_blocks": 3, "depths": [2, 2, 2], "sr_ratios": [4, 2, 1], "hidden_sizes": [24, 48, 96],
    "patch_sizes": [7, 3, 3], "strides": [2, 2, 2], "num_attention_heads": [1, 2, 3], "mlp_ratios": [2, 2, 2],
    "decoder_hidden_size": 64, "image_size": 48, "drop_path_rate": 0.0, "classifier_dropout_prob": 0.0,
}  # fmt: skip
"""321,075 parameters without its head; the ViT of the recipe has 325,440."""
FRESH = {"family": "vit", "config": yaml.safe_load((RECIPES / "mnist.yaml").read_text())["model"]["config"]}


@dataclass
class Runs:
    """The trainings of the program, kept in a folder; ``small`` cuts each to a few steps."""

    folder: Path
    threads: int
    small: bool

    def made(self, name: str, recipe: str, seed: int, *, verb: str = "finetune", **keys: Any) -> dict[str, Any]:
        """Return the scores and the seconds of a run, which is trained where it is not there yet."""
        folder = self.folder / f"{name}-{seed}"
        cost = self._cost_of(folder)
        if not cost.is_file():
            self._train(folder, recipe, seed, verb, {**keys, **(self._few(recipe) if self.small else {})})
        found = json.loads(cost.read_text())
        scores = folder / "scores.json"
        told = json.loads(scores.read_text())["scores"] if scores.is_file() else []
        rows = {each["name"]: {key: each.get(key) for key in ("score", "low", "high")} for each in told}
        return {"run": name, "seed": seed, **found, "scores": rows}

    def _train(self, folder: Path, recipe: str, seed: int, verb: str, keys: dict[str, Any]) -> None:
        words = [f"--{key}={json.dumps(value)}" for key, value in {"seed": seed, **keys}.items()]
        command = [sys.executable, "-m", "orrery", verb, str(RECIPES / recipe), "--overwrite", "--output", str(folder)]
        environment = os.environ | {"OMP_NUM_THREADS": str(self.threads)}
        before, began = processor_seconds(), time.perf_counter()
        done = subprocess.run([*command, *words], env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"{' '.join([*command, *words])}\n{done.stdout}\n{done.stderr}")
        cost = {"seconds": time.perf_counter() - began, "processor_seconds": processor_seconds() - before}
        self._cost_of(folder).write_text(json.dumps(cost))

    def _cost_of(self, folder: Path) -> Path:
        """Return the file of a run's seconds, which is written where it has ended."""
        return folder / "cost.json"

    def _few(self, recipe: str) -> dict[str, Any]:
        """Return what cuts a recipe to a few steps on a few pictures."""
        values = yaml.safe_load((RECIPES / recipe).read_text())
        train, val = (str(values["data"][side]).partition("[")[0] for side in ("train", "val"))
        return {
            **{"training.steps": 2, "evaluation.every": 2, "checkpoints.every": 2, "training.schedule.warmup": 1},
            **{"data.train": f"{train}[:300]", "data.val": f"{val}[:20]"},
        }


def processor_seconds() -> float:
    """Return the processor's seconds of all programs that were waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def mnist(runs: Runs, seeds: Sequence[int]) -> dict[str, Any]:
    """Classes of handwritten digits, and what simple methods reach."""
    found = [runs.made("mnist", "mnist.yaml", seed) for seed in seeds]
    train, val = (digits(part) for part in ("mnist-10k[:7000]", "mnist-10k[7000:]"))
    beside = {
        "logistic regression": logistic(train, val),
        "three nearest pictures": nearest(train, val),
        "least squares over a Gaussian kernel": kernel_squares(train, val),
        "two layers of 256, the same augmentation": perceptron(train, val, 2 if runs.small else 2000),
    }
    return {"runs": found, "beside": beside}


def few(runs: Runs, seeds: Sequence[int]) -> dict[str, Any]:
    """Ten labels a digit, after hidden patches and without them."""
    found, beside = [], []
    before = runs.made("pretrain-patches", "pretrain-patches.yaml", seeds[0], verb="train")
    encoder = {"from": str(runs.folder / f"pretrain-patches-{seeds[0]}"), "dropout": 0.1}
    probe = {"freeze": ["embed.*", "stack.*"]}
    # A head alone has no matrix of a block, which Muon wants.
    still = {"training.optimizer": {"kind": "adamw", "rate": 1e-2, "weight_decay": 0.05}}
    # As long as pre-training and fine-tuning together, with the rate of recipes/mnist.yaml.
    longer = {
        **{"training.steps": 4300, "checkpoints.every": 4300, "evaluation.every": 500, "training.final": "best"},
        **{"training.optimizer.rate": 3e-3, "training.optimizer.layer_decay": 1.0},
    }
    shorter = {"training.optimizer.rate": 3e-3, "training.optimizer.layer_decay": 1.0}
    for seed in seeds:
        chosen = {"data.few": {"each": 10, "choice": seed}}
        ways: dict[str, dict[str, Any]] = {
            "few": {"model": encoder},
            "few-fresh": {"model": FRESH, **longer},
            "few-fresh-short": {"model": FRESH, **shorter},
            "few-probe": {"model": encoder | probe, **still},
            "few-random-probe": {"model": FRESH | probe, **still},
        }
        found += [runs.made(name, "mnist-few.yaml", seed, **keys, **chosen) for name, keys in ways.items()]
        beside.append(logistic(*(digits("mnist-10k[:7000]", chosen["data.few"]), digits("mnist-10k[7000:]"))))
    return {"before": before, "runs": found, "beside": {"logistic regression": mean(beside)}}


def things(runs: Runs, seed: int) -> str:
    """Return the folder of the run of single things, whose encoder others begin with."""
    found = runs.made("things", "things.yaml", seed)
    return str(runs.folder / f"{found['run']}-{seed}")


def transfer(runs: Runs, seeds: Sequence[int]) -> dict[str, Any]:
    """The masks of a few scenes, with the encoder of single things and without."""
    few_scenes = {
        "data.train": "scenes[:200]",
        "training.steps": 600,
        "evaluation.every": 300,
        "checkpoints.every": 600,
    }
    found = []
    for seed in seeds:
        base = {"model": {"from": things(runs, seed)}}
        found += [
            runs.made("things", "things.yaml", seed),
            runs.made("transfer", "scenes-masks.yaml", seed, **base, **few_scenes),
            runs.made("transfer-fresh", "scenes-masks.yaml", seed, **few_scenes),
        ]
    return {"runs": found}


def masks(runs: Runs, seeds: Sequence[int]) -> dict[str, Any]:
    """The masks of scenes."""
    return from_each(runs, seeds, "masks", "segformer", SEGFORMER)


def boxes(runs: Runs, seeds: Sequence[int]) -> dict[str, Any]:
    """The boxes of scenes."""
    return from_each(runs, seeds, "boxes", "yolos", YOLOS)


def from_each(runs: Runs, seeds: Sequence[int], what: str, family: str, config: dict[str, Any]) -> dict[str, Any]:
    """Return runs from fresh weights, from the encoder of ``things``, and of another family of equal size."""
    found, recipe = [], f"scenes-{what}.yaml"
    for seed in seeds:
        found += [
            runs.made(f"{what}-fresh", recipe, seed),
            runs.made(what, recipe, seed, model={"from": things(runs, seed)}),
            runs.made(f"{what}-{family}", recipe, seed, model={"family": family, "config": config}),
        ]
    return {"runs": found}


def captions(runs: Runs, seeds: Sequence[int]) -> dict[str, Any]:
    """The captions of scenes, and which share of its attention a thing's name has inside of the thing's box."""
    found = []
    for seed in seeds:
        for name, encoder in (("captions", {"encoder": things(runs, seed)}), ("captions-fresh", None)):
            made = runs.made(name, "scenes-captions.yaml", seed, **{"model.from": encoder})
            found.append({**made, **attention(runs.folder / f"{name}-{seed}", 10 if runs.small else 100)})
    return {"runs": found}


def attention(folder: Path, scenes: int) -> dict[str, list[float]]:
    """Return, block by block, how the names of things look at their boxes.

    ``attention`` is the share of its attention that a name has on patches of its thing's box, the mean over names;
    ``inside`` is the share of the names that look most at such a patch.
    """
    from orrery.tasks.finetuning._words_on_pictures import inside_share, word_patterns

    lm, source = orrery.load(folder, say=lambda line: None), SOURCES.find("boxes")
    there = source.read(source.Settings.model_validate({"kind": "boxes", "train": f"scenes/val[:{scenes}]"}))
    said = SOURCES.find("captions")
    told = said.read(said.Settings.model_validate({"kind": "captions", "train": f"scenes/val[:{scenes}]"}))
    grid = lm.model.spec.reader.embed.grid  # type: ignore[attr-defined]
    found: dict[str, list[list[float]]] = {"attention": [], "inside": []}
    for one, other in zip(there.train, told.train, strict=True):  # type: ignore[attr-defined]
        words, patterns = word_patterns(lm, one.pixels().permute(1, 2, 0), other.target[0])
        places = [n for n, word in enumerate(words) if n > 1 and words[n - 2] == "a" and words[n - 1] != "a"]
        for place, thing in zip(places, one.target, strict=True):
            weights = patterns[:, place].unflatten(1, (grid.rows, grid.columns))
            most = (weights == weights.amax((1, 2), keepdim=True)).double()
            for name, each in (("attention", weights), ("inside", most)):
                found[name].append([inside_share(own, thing.box, (48, 48)) for own in each])
    return {name: [mean(own) for own in zip(*rows, strict=True)] for name, rows in found.items()}


Digits = tuple[torch.Tensor, torch.Tensor]
"""Pictures as rows of numbers from 0 to 1, and their labels."""


def digits(part: str, few: dict[str, Any] | None = None) -> Digits:
    """Return pictures of handwritten digits, or a few of each as the recipe chooses them."""
    rows = list(read_pictures(part))
    if few is not None:
        from orrery.data.sources.pictures import FewSettings, few_of

        rows = few_of(rows, FewSettings.model_validate(few))
    pixels = torch.stack([row.pixels().flatten() for row in rows]).float() / 255
    return pixels, torch.tensor([int(row.target) for row in rows])


def accuracy(said: torch.Tensor, right: torch.Tensor) -> float:
    """Return the share of right answers."""
    return float((said == right).float().mean())


def logistic(train: Digits, val: Digits) -> float:
    """Return the accuracy of logistic regression."""
    weights = torch.zeros(train[0].shape[1] + 1, 10, requires_grad=True)
    fit = torch.optim.LBFGS([weights], max_iter=300, line_search_fn="strong_wolfe")

    def scores(pixels: torch.Tensor) -> torch.Tensor:
        return pixels @ weights[:-1] + weights[-1]

    def cost() -> torch.Tensor:
        fit.zero_grad()
        loss = F.cross_entropy(scores(train[0]), train[1]) + 1e-3 * weights[:-1].square().sum() / 2
        loss.backward()
        return loss

    fit.step(cost)
    return accuracy(scores(val[0]).argmax(1), val[1])


def nearest(train: Digits, val: Digits) -> float:
    """Return the accuracy of the most frequent label among the three nearest pictures."""
    near = torch.cdist(val[0], train[0]).topk(3, largest=False).indices
    return accuracy(train[1][near].mode(1).values, val[1])


def kernel_squares(train: Digits, val: Digits) -> float:
    """Return the accuracy of regularised least squares over ``exp(-|x - y|^2 / (784 var))`` (Suykens et al. 1999)."""
    width = float(train[0].var() * train[0].shape[1])
    learned, asked = (torch.exp(-(torch.cdist(side[0], train[0]) ** 2) / width).double() for side in (train, val))
    goals = F.one_hot(train[1], 10).double() * 2 - 1
    weights = torch.linalg.solve(learned + 0.05 * torch.eye(len(learned), dtype=torch.float64), goals)
    return accuracy((asked @ weights).argmax(1), val[1])


def perceptron(train: Digits, val: Digits, steps: int) -> float:
    """Return the accuracy of two layers of 256 that learn with the augmentation of the recipe."""
    import numpy as np

    torch.manual_seed(0)
    change = Augmentation(**yaml.safe_load((RECIPES / "mnist.yaml").read_text())["data"]["augment"])
    sizes = ((784, 256), (256, 256), (256, 10))
    layers = [layer for size in sizes for layer in (torch.nn.Linear(*size), torch.nn.ReLU())][:-1]
    model, order = torch.nn.Sequential(*layers), Shuffled(len(train[0]), 0)
    fit = torch.optim.AdamW(model.parameters(), 2e-3, weight_decay=0.01)
    rate = torch.optim.lr_scheduler.CosineAnnealingLR(fit, steps)
    whole = (train[0] * 255).round().to(torch.uint8).unflatten(1, (1, 28, 28))
    for step in range(steps):
        rows = torch.from_numpy(order.items(step * 128, (step + 1) * 128))
        pixels = change.apply(whole[rows], np.random.default_rng(step)).flatten(1).float() / 255
        fit.zero_grad()
        F.cross_entropy(model(pixels), train[1][rows]).backward()
        fit.step()
        rate.step()
    return accuracy(model(val[0]).argmax(1), val[1])


MEASURED: dict[str, Callable[[Runs, Sequence[int]], dict[str, Any]]] = {
    "mnist": mnist, "few": few, "transfer": transfer, "masks": masks, "boxes": boxes, "captions": captions,
}  # fmt: skip


def main() -> int:
    """Measure the parts one after the other, and write the record after each."""
    made = parser(__doc__)
    made.add_argument("--keep", type=Path, metavar="FOLDER", help="where the runs are, and stay")
    made.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), help="the parts to measure")
    made.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3], help="of the trainings")
    made.add_argument("--threads", type=int, default=2, help="of each training")
    asked = parsed(made, {"only": ["masks"], "seeds": [1], "threads": 1}, needs=("keep",))
    if asked.keep is None:
        import tempfile

        with tempfile.TemporaryDirectory() as folder:
            return measured(asked, Path(folder))
    return measured(asked, asked.keep.absolute())


def measured(asked: Any, folder: Path) -> int:
    """Measure what is asked for, with the runs in a folder."""
    record, found = Record(asked), {}
    runs = Runs(folder, asked.threads, asked.small)
    folder.mkdir(parents=True, exist_ok=True)
    for name in asked.only:
        found[name] = MEASURED[name](runs, asked.seeds)
        record.write(found)
        for each in found[name]["runs"]:
            scores = ", ".join(f"{key} {one['score']:.4f}" for key, one in each["scores"].items())
            print(f"{name}: {each['run']} seed {each['seed']}: {scores}; {each['processor_seconds']:.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
