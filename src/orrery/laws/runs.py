"""Tiny training runs for the laws: a family's batches and objective, and the loop that users' runs go through."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from orrery.errors import RunError
from orrery.laws.evidence import CannotRunError
from orrery.laws.models import image_size, of_images, random_ids, spec_of, subject, translates
from orrery.laws.place import device, placed
from orrery.models.dropout import with_dropout
from orrery.models.inputs import Batch
from orrery.nn.cross_entropy import IGNORED
from orrery.objectives import Objective, Term

LENGTH, ROWS = 9, 4
LENGTHS = ((9,), (4, 3), (2,), (5, 1, 3))
"""The documents of each row of a batch; what is left over is padding."""
READ = (7, 2, 5, 1)
"""The tokens of each source, so that a mean of means is far off and padding is looked at by mistake."""


def objective_of(family: str) -> Objective:
    """Return what a family learns.

    Raises:
        CannotRunError: the objectives are not part of this installation.
    """
    try:
        from orrery.objectives.causal import CausalLanguageModel
        from orrery.objectives.seq2seq import SequenceToSequence
    except ImportError as error:
        raise CannotRunError("the objectives are not there", "they come with training") from error
    if image_size(family) is not None:
        return Labels()
    return SequenceToSequence() if translates(family) else CausalLanguageModel()


class Labels(Objective):
    """Cross entropy of one label an image: no recipe offers it, and image models shall train at every precision."""

    needs = ("images", "targets")

    def counts(self, batch: Batch) -> dict[str, int]:
        """Count the images."""
        return {"label": len(batch["targets"])}

    def loss(self, model: Any, batch: Batch) -> dict[str, Term]:
        """Return the summed cross entropy."""
        loss = F.cross_entropy(of_images(model, batch["images"]), batch["targets"], reduction="sum")
        return {"label": Term(loss, len(batch["targets"]))}


def examples(family: str, step: int) -> Batch:
    """Return a batch as a pure function of the step: packed and padded, with sources of unequal lengths."""
    if (size := image_size(family)) is not None:
        return {"images": _noise(ROWS, size, step), "targets": placed(torch.arange(ROWS) % 2)}
    ids = random_ids(ROWS, LENGTH + 1, seed=step)
    documents, positions = packed(LENGTHS)
    ids, targets = ids[:, :-1], ids[:, 1:].masked_fill(documents < 0, IGNORED)
    if translates(family):
        source = random_ids(ROWS, max(READ), seed=100 + step)
        source_real = placed(torch.arange(max(READ)) < torch.tensor(READ)[:, None])
        return {"ids": ids, "targets": targets, "source": source, "source_real": source_real}
    if spec_of(family).reads_source:
        return {"ids": ids, "targets": targets}
    return {"ids": ids, "targets": targets, "documents": documents, "positions": positions, "real": documents >= 0}


def packed(lengths: tuple[tuple[int, ...], ...]) -> tuple[Tensor, Tensor]:
    """Return the number of each token's document, -1 for padding, and its place in it."""
    documents, positions = placed(torch.full((2, len(lengths), LENGTH), -1))
    for row, each in enumerate(lengths):
        start = 0
        for number, length in enumerate(each):
            documents[row, start : start + length] = number
            positions[row, start : start + length] = torch.arange(length)
            start += length
    return documents, positions.clamp(min=0)


def _noise(rows: int, size: tuple[int, ...], seed: int) -> Tensor:
    return placed(torch.randn(rows, *size, generator=torch.Generator().manual_seed(seed)))


class FailingSource:
    """Batches as a pure function of the step; one that fails once, as a machine does."""

    def __init__(self, family: str, fail_at: int | None = None) -> None:
        self.family, self.fail_at = family, fail_at

    def batch(self, step: int) -> Batch:
        """Return the family's batch."""
        if step == self.fail_at:
            raise RunError("this run was told to fail", "it is a test")
        return examples(self.family, step)

    def state(self) -> dict[str, Any]:
        """Return nothing: the step says all."""
        return {}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore nothing: the batches are a function of the step."""


def learner(family: str, dropout: float) -> nn.Module:
    """Return a tiny model with fresh weights and the kernel that a training run would give it."""
    from orrery.runs.building import training_kernel

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        built: Any = with_dropout(spec_of(family), dropout).build(0)
    built.kernel = training_kernel(built.spec, device().type)
    return built if translates(family) else subject(built)


def train(family: str, folder: Path, *, fail_at: int | None = None, dropout: float = 0.0, **training: Any) -> None:
    """Train a tiny model, from the newest checkpoint in the folder if there is one.

    Raises:
        CannotRunError: the training loop is not part of this installation.
    """
    try:
        from orrery.training.folder import open_run_folder
        from orrery.training.loop import Parts
        from orrery.training.loop import train as run_training
        from orrery.training.signals import pass_on
    except ImportError as error:
        raise CannotRunError("the training loop is not there", "it comes with training") from error
    parts = Parts(learner(family, dropout), objective_of(family), FailingSource(family, fail_at))
    with open_run_folder(folder, resume=folder.exists()) as opened, torch.random.fork_rng(devices=[]):
        pass_on(run_training(parts, recipe(**training), opened).signal)


def recipe(**training: Any) -> Any:
    """Return the settings of a run; the keywords are keys of ``training``."""
    from orrery.recipes.read import check_recipe

    usual = {
        "micro_batch": 3,
        "precision": "float32",
        "device": device().type,
        "optimizer": {"kind": "adamw", "rate": 0.01},
    }
    values = {
        "name": "law",
        "model": {"family": "tiny"},
        "tokenizer": {"kind": "character"},
        "data": {"train": "none"},
        "batches": {"length": LENGTH, "size": ROWS},
        "training": {**usual, **training},
        "checkpoints": {"every": 2, "keep": 2},
        "logging": {"every": 1},
    }
    return check_recipe(values, "the laws")


def losses(folder: Path) -> list[float]:
    """Return the loss of every step of a run."""
    lines = (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return [float(json.loads(line)["train/loss"]) for line in lines]


@contextmanager
def scratch() -> Iterator[Path]:
    """Yield a folder for a run that nobody keeps, in memory where the system has such a place.

    A disk takes milliseconds to make each of a run's files durable, and a hundred runs write thousands.
    """
    memory = Path("/dev/shm")
    where = memory if memory.is_dir() and os.access(memory, os.W_OK | os.X_OK) else None
    with TemporaryDirectory(dir=where) as folder:
        yield Path(folder)
