"""A program that defines an objective, a data source, a head and a metric of its own, and trains with them.

``python own_parts.py MODEL FOLDER [--steps N] [--pause SECONDS] [FILE of command lines]``
"""

import argparse
import copy
import io
import json
import sys
import time
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Literal

import torch
import torch.nn.functional as F
from torch import nn

import orrery
from orrery.data import sources
from orrery.data.batches.seeds import derive_seed
from orrery.errors import OrreryError
from orrery.metrics import Metric, MetricSettings
from orrery.metrics import register as register_metric
from orrery.models import heads
from orrery.nn.spec import ModuleSpec, register, spec
from orrery.objectives import Objective, Term
from orrery.objectives import register as register_objective
from orrery.schema.numbers import Positive
from orrery.schema.section import Section

PAUSE = 0.0


class CoinSettings(sources.SourceSettings):
    """Rows of random tokens; the label of a row says whether its first token is odd."""

    kind: Literal["coins"] = "coins"
    rows: Positive = 6
    vocabulary: Positive = 32

    @property
    def holds_back(self) -> bool:
        return True


class CoinBatches:
    """Batches that depend on how many were drawn: a source with a state."""

    def __init__(self, rows: int, vocabulary: int, seed: int) -> None:
        self.rows, self.vocabulary, self.seed, self.drawn = rows, vocabulary, seed, 0

    def batch(self, step: int):
        time.sleep(PAUSE)
        self.drawn += 1
        rng = torch.Generator().manual_seed(derive_seed(self.seed, step, self.drawn))
        ids = torch.randint(self.vocabulary, (self.rows, 5), generator=rng)
        return {"ids": ids, "labels": ids[:, 0] % 2}

    def state(self):
        return {"drawn": self.drawn}

    def restore(self, state):
        self.drawn = state["drawn"]


class HeldBackCoins(CoinBatches):
    """The same batches whenever they are asked for."""

    def batch(self, step: int):
        self.drawn = 0
        return super().batch(step)


@sources.register
class Coins(sources.Source):
    """A source that needs no tokenizer."""

    Settings = CoinSettings
    gives = ("ids", "labels")
    must_be_read = ("labels",)

    def __init__(self, settings: CoinSettings) -> None:
        self.settings = settings

    @classmethod
    def read(cls, settings: CoinSettings) -> "Coins":
        return cls(settings)

    @property
    def fingerprint(self) -> str:
        return f"coins {self.settings.rows} {self.settings.vocabulary}"

    def examples(self, request: sources.BatchRequest) -> sources.Examples:
        numbers = self.settings.rows, self.settings.vocabulary
        train = CoinBatches(*numbers, request.seed)
        held_back = sources.HeldBack(HeldBackCoins(*numbers, request.seed + 1), request.limited(4))
        return sources.Examples(train, held_back, {"coins": 1000}, request.size * 5)


@register
class Verdict(nn.Module):
    """``W tanh(x_first)``: two scores a row."""

    @spec
    class Spec(ModuleSpec):
        labels: int

        def build(self, width: int) -> "Verdict":
            return Verdict(width, self.labels)

    def __init__(self, width: int, labels: int) -> None:
        super().__init__()
        self.scores = nn.Linear(width, labels)

    def forward(self, x_BLD, real_BL=None):
        return self.scores(torch.tanh(x_BLD[:, 0]))


class VerdictSettings(heads.HeadSettings):
    """How many labels there are."""

    kind: Literal["verdict"] = "verdict"
    labels: Positive = 2


@heads.register
class VerdictHead(heads.Head):
    """The head in a recipe."""

    Settings = VerdictSettings

    @staticmethod
    def spec(settings: VerdictSettings) -> ModuleSpec:
        return Verdict.Spec(labels=settings.labels)


@register_objective
class Verdicts(Objective):
    """Cross entropy of a head's labels, sharpened by a number that is learned, and the distance from where it began."""

    class Settings(Section):
        """Which head learns, and how near the model stays to the one that it began as."""

        kind: Literal["verdicts"] = "verdicts"
        head: str
        near: float = 0.1

    needs = ("ids", "labels")
    metrics = ("loss",)

    def __init__(self, head: str, near: float = 0.1) -> None:
        self.head, self.near = head, near

    def heads(self, spec):
        return (self.head,)

    def bind(self, spec, tokenizer):
        if self.head not in spec.head_names:
            raise orrery.errors.UsageError(f"the model has no head {self.head}", "name one in model.heads")

    def modules(self, model):
        self.reference = copy.deepcopy(model).requires_grad_(False).eval()
        self.sharpness = nn.Linear(1, 1, bias=False)
        nn.init.uniform_(self.sharpness.weight, 0.9, 1.1)  # random: it depends on the seed of the run alone
        return {"reference": self.reference, "sharpness": self.sharpness}

    def counts(self, batch):
        return {"labels": len(batch["labels"]), "near": batch["ids"].numel()}

    def loss(self, model, batch):
        answers = model(batch, [self.head, "hidden"])
        with torch.no_grad():
            there = self.reference(batch, ["hidden"])["hidden"]
        scores = answers[self.head] * self.sharpness.weight
        loss = F.cross_entropy(scores, batch["labels"], reduction="sum")
        distance = (answers["hidden"] - there).square().mean(-1).sum()
        return {"labels": Term(loss, len(scores)), "near": Term(distance, batch["ids"].numel(), self.near)}


@register_metric
class Hits(Metric):
    """How many labels of a head are right."""

    class Settings(MetricSettings):
        """Which head."""

        kind: Literal["hits"] = "hits"
        head: str

    higher_is_better = True

    def __init__(self, head: str) -> None:
        self.head = head

    def measure(self, model, batch, terms):
        right = model(batch, [self.head])[self.head].argmax(-1) == batch["labels"]
        return torch.tensor([float(right.sum()), float(len(right))])

    def value(self, sums, held_back):
        return float(sums[0] / sums[1])


def recipe(model: Path, steps: int) -> dict:
    """Return a recipe that names all four."""
    return {
        "name": "own",
        "model": {"from": str(model), "heads": {"odd": {"kind": "verdict"}}, "freeze": ["embed.*"]},
        "data": {"kind": "coins", "rows": 8},
        "batches": {"size": 8},
        "objective": {"kind": "verdicts", "head": "odd"},
        "training": {
            "steps": steps,
            "micro_batch": 3,
            "optimizer": {"kind": "adamw", "rate": 0.02},
            "schedule": {"kind": "constant"},
            "precision": "float32",
        },
        "evaluation": {"every": 2, "metrics": [{"kind": "hits", "head": "odd"}], "best": "hits"},
        "checkpoints": {"every": 3, "keep": 2},
        "logging": {"every": 1},
        "expect": {"metric": "val/hits", "bound": 0.4},
    }


def commands(files: list[str]) -> int:
    """Do the command lines of JSON files, a list of lists of words each, and print what each one said as JSON."""
    from orrery.cli.program import run

    for file in files:
        for words in json.loads(Path(file).read_text()):
            with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
                code = run(words)
            print(json.dumps([code, out.getvalue(), err.getvalue()]))
    return 0


def main() -> int:
    """Train, or do what the words of a command line say."""
    parser = argparse.ArgumentParser()
    parser.add_argument("model", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--pause", type=float, default=0.0)
    parser.add_argument("words", nargs="*")
    given = parser.parse_args()
    global PAUSE
    PAUSE = given.pause
    torch.set_num_threads(1)
    if given.words:
        return commands(given.words)
    try:
        orrery.train(recipe(given.model, given.steps), given.folder, resume=True)
    except OrreryError as error:
        print(f"error: {error.message}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
