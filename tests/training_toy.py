"""A toy decoder with the interface of the real one, its batches, and a script that trains it."""

import argparse
import math
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from orrery.checkpoints.tensors import read_tensors
from orrery.data.batches.seeds import derive_seed
from orrery.models.model import Model
from orrery.objectives.causal import CausalLanguageModel
from orrery.recipes.config import Recipe
from orrery.recipes.read import check_recipe, set_dotted
from orrery.training.evaluate import Validation
from orrery.training.folder import open_run_folder
from orrery.training.loop import Outcome, Parts, Trainer
from orrery.tuning import describe

VOCABULARY, WIDTH, LENGTH = 17, 16, 8


class ToyDecoder(nn.Module):
    """A causal mixer (running mean) between an embedding and a head, dropout, a norm, tied weights."""

    spec = SimpleNamespace(head_names=("language_model",))

    def __init__(self, dropout: float = 0.1, vocabulary: int = VOCABULARY, width: int = WIDTH) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.mix = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)
        self.dropout = nn.Dropout(dropout)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.embedding.weight

    def hidden(self, ids: Tensor, positions: Any = None, documents: Any = None, real: Any = None) -> Tensor:
        x_BLD = self.embedding(ids)
        lengths = torch.arange(1, ids.shape[1] + 1, device=ids.device)[:, None]
        return self.norm(x_BLD + self.dropout(torch.tanh(self.mix(x_BLD.cumsum(1) / lengths))))

    def logits(self, ids: Tensor) -> Tensor:
        return self.head(self.hidden(ids))

    def forward(self, batch: Any, heads: Any) -> dict[str, Any]:
        x_BLD = self.hidden(batch["ids"])
        return {name: answer(self.head, x_BLD, None) for name, answer in heads.items()}


class ToySource:
    """Counting sequences with noise: a pure function of (seed, step)."""

    def __init__(self, rows: int = 6, seed: int = 0, poison: int | None = None) -> None:
        self.rows, self.seed, self.poison = rows, seed, poison

    def batch(self, step: int) -> dict[str, Tensor]:
        rng = torch.Generator().manual_seed(derive_seed(self.seed, step))
        start = torch.randint(VOCABULARY, (self.rows, 1), generator=rng)
        tokens = (start + torch.arange(LENGTH + 1)) % VOCABULARY
        targets = tokens[:, 1:].clone()
        targets[torch.rand(targets.shape, generator=rng) < 0.3] = -100
        return {"ids": tokens[:, :-1], "targets": targets}

    def state(self) -> dict[str, Any]:
        return {}

    def restore(self, state: dict[str, Any]) -> None:
        assert state == {}


def toy_model(seed: int = 0, **settings: Any) -> ToyDecoder:
    torch.manual_seed(seed)
    return ToyDecoder(**settings)


def toy_recipe(**dotted: Any) -> Recipe:
    """Return a small recipe; keys have ``__`` for the dot."""
    values: dict[str, Any] = {
        "name": "toy",
        "model": {"family": "toy"},
        "tokenizer": {"kind": "character"},
        "data": {"train": "none"},
        "batches": {"length": LENGTH, "size": 6},
        "training": {"steps": 12, "micro_batch": 4, "precision": "float32", "device": "cpu"},
        "evaluation": {"every": 4, "batches": 2},
        "checkpoints": {"every": 3, "keep": 2},
        "logging": {"every": 2},
    }
    set_dotted(values, "training.optimizer", {"kind": "adamw", "rate": 0.01})
    set_dotted(values, "training.schedule", {"kind": "cosine", "warmup": min(3, dotted.get("training__steps", 3))})
    for key, value in dotted.items():
        set_dotted(values, key.replace("__", "."), value)
    return check_recipe(values, "toy")


def described(model: nn.Module) -> dict[str, Any]:
    """Return what spec.json says of a model of ours, and a word for the toy."""
    return describe(model) if isinstance(model, Model) else {"kind": "toy"}


def toy_parts(model: nn.Module | None = None, source: Any = None, objective: Any = None, **more: Any) -> Parts:
    objective = objective or CausalLanguageModel()
    validation = Validation(ToySource(seed=99), 2, objective, bytes_per_token=math.e)
    return Parts(model or toy_model(), objective, source or ToySource(), validation, described, **more)


def toy_run(folder: Path, recipe: Recipe, parts: Parts | None = None, **how: Any) -> Outcome:
    with open_run_folder(folder, resume=how.pop("resume", False), overwrite=how.pop("overwrite", False)) as opened:
        return Trainer(parts or toy_parts(), recipe, opened, **how).run()


def run_weights(folder: Path) -> dict[tuple[str, str], Tensor]:
    """Return the tensors of the newest checkpoint of a run, each under its file and its name."""
    newest = max((folder / "checkpoints").glob("step-*"))
    return {
        (file.name, name): tensor
        for file in sorted(newest.glob("*.safetensors"))
        for name, tensor in read_tensors(file).items()
    }


def main() -> int:
    """Train the toy in this process: ``python training_toy.py FOLDER --steps 12 [--width 16]``."""
    from orrery.errors import OrreryError
    from orrery.training.parallel.joining import find_ranks

    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--width", type=int, default=WIDTH)
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--pause", type=float, default=0.0)
    parser.add_argument("--evaluation-pause", type=float, default=0.0)
    parser.add_argument("--ranks", action="store_true")
    words = parser.parse_args()
    torch.set_num_threads(1)
    recipe = toy_recipe(training__steps=words.steps)
    parts = toy_parts(toy_model(dropout=words.dropout, width=words.width), source=SlowSource(words.pause))
    if words.evaluation_pause:
        slow = SlowSource(words.evaluation_pause, words.folder / "evaluating", seed=99)
        parts = replace(parts, validation=replace(parts.validation, source=slow))
    print("ready", flush=True)
    try:
        ranks = find_ranks() if words.ranks else None
        if ranks is not None and ranks.rank:
            from orrery.training.folder import RunFolder

            outcome = Trainer(parts, recipe, RunFolder(words.folder), ranks).run()
        else:
            outcome = toy_run(words.folder, recipe, parts, resume=True, ranks=ranks)
    except OrreryError as error:
        print(f"error: {error.message}\nhint: {error.hint}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:  # left to Python, the code depends on what torch imports while it exits
        return 130
    return 128 + outcome.signal if outcome.signal else 0


class SlowSource(ToySource):
    """Toy batches that take a while and leave a mark, so that a signal arrives inside a step or an evaluation."""

    def __init__(self, pause: float, mark: Path | None = None, seed: int = 0) -> None:
        super().__init__(seed=seed)
        self.pause, self.mark = pause, mark

    def batch(self, step: int) -> dict[str, Tensor]:
        import time

        if self.mark is not None:
            self.mark.touch()
        time.sleep(self.pause)
        return super().batch(step)


if __name__ == "__main__":
    sys.exit(main())
