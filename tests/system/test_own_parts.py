"""What a program defines itself, one class each, takes part in everything: recipes, training, resuming, errors.

``tests/own_parts.py`` is that program: an objective that owns a frozen reference and a number that learns, a source
with a state and without a tokenizer, a head, and a metric of which more is better. Nothing of the package knows them.
"""

import json
import random
import signal
import sys
import time
from pathlib import Path
from subprocess import CompletedProcess
from typing import Literal

import pytest
import torch
import yaml

import programs
from orrery.data.sources import SOURCES
from orrery.errors import UsageError
from orrery.exchange.saving.save import save_model
from orrery.families import load_family
from orrery.metrics import METRICS
from orrery.objectives import OBJECTIVES
from orrery.objectives.causal import CausalLanguageModel
from orrery.schema.registry import Registry
from orrery.schema.section import Section
from programs import PIPE, Program

PROGRAM = Path(__file__).parents[1] / "own_parts.py"
LEARNED = ("model.safetensors", "objective.safetensors", "optimizer.safetensors", "spec.json")


def _known(registry: Registry, own: str) -> str:
    """Return what is said of a kind that there is not, given that the program has one of its own."""
    return f"kind must be one of {', '.join(sorted({*registry.names(), own}))}"


REFUSED = {
    _known(OBJECTIVES, "verdicts"): {"objective": "{kind: verdict, head: odd}"},
    "the model has no head even": {"objective.head": "even"},
    "did you mean 'near'": {"objective.nearer": "1"},
    "needs targets, and data of kind coins give ids, labels": {"objective": "causal"},
    "data.rows": {"data.rows": "0"},
    _known(SOURCES, "coins"): {"data": "{kind: coin}"},
    "known: loss, hits": {"evaluation.best": "misses"},
    _known(METRICS, "hits"): {"evaluation.metrics": "[miss]"},
    "model.heads.odd.labels": {"model.heads.odd.labels": "none"},
}
"""What is said, and the keys that a command line changes."""


@pytest.fixture(scope="module")
def base(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("own") / "base"
    rules = load_family("llama")
    torch.manual_seed(0)
    save_model(folder, rules.spec(rules.TINY).build(), "llama", rules.TINY)
    return folder


def started(*words: str | Path) -> Program:
    return Program([sys.executable, PROGRAM, *words], stdout=PIPE, stderr=PIPE, text=True)


def done(*words: str | Path) -> CompletedProcess:
    return programs.run([sys.executable, PROGRAM, *words], capture_output=True, text=True, timeout=120)


@pytest.fixture(scope="module")
def whole(base: Path) -> Path:
    folder = base.parent / "whole"
    finished = done(base, folder)
    assert finished.returncode == 0, finished.stderr
    assert "own: val/hits" in finished.stderr
    assert "expected at least 0.4: met" in finished.stderr
    return folder


def records(folder: Path) -> list[dict]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def test_it_learns_from_a_model_that_exists_and_the_best_is_the_highest(whole: Path) -> None:
    """The metric decides by its own direction, and the checkpoint of its best value stays."""
    scored = [(record["val/hits"], -record["step"]) for record in records(whole) if "val/hits" in record]
    best = -max(scored)[1]
    assert len(set(scored)) > 2
    assert (whole / "checkpoints/best").read_text().strip() == f"step-{best:06d}"
    assert scored[-1][0] > scored[0][0]


def test_after_sigkill_it_goes_on_to_the_same_bytes(base: Path, whole: Path) -> None:
    """Weights, what the objective owns, optimizer, the state of the source: all of it comes back."""
    folder, killed, rng = base.parent / "killed", 0, random.Random(7)
    for _ in range(40):
        process = started(base, folder, "--pause", "0.15")
        saved = len(list(folder.glob("checkpoints/step-*")))
        deadline = time.monotonic() + 60
        while process.poll() is None and len(list(folder.glob("checkpoints/step-*"))) <= min(saved, 2):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        time.sleep(rng.random() * 0.6)
        if process.poll() is not None:
            break
        process.send_signal(signal.SIGKILL)
        process.communicate()
        killed += 1
        if killed == 3:
            assert done(base, folder).returncode == 0
            break
    assert killed
    step = "checkpoints/step-000012"
    for name in LEARNED:
        assert (folder / step / name).read_bytes() == (whole / step / name).read_bytes(), name
    states = [json.loads((place / step / "state.json").read_text()) for place in (folder, whole)]
    assert states[0]["source"] == states[1]["source"] == {"drawn": 12}
    learned = [{k: v for k, v in r.items() if k.startswith(("val/", "train/"))} for r in records(folder)]
    assert learned == [{k: v for k, v in r.items() if k.startswith(("val/", "train/"))} for r in records(whole)]
    assert (folder / "final/model.safetensors").read_bytes() == (whole / "final/model.safetensors").read_bytes()


def test_the_command_line_prints_and_refuses_them_by_name(base: Path, tmp_path: Path, whole: Path) -> None:
    recipe = yaml.safe_load((whole / "config.yaml").read_text())
    (tmp_path / "recipe.yaml").write_text(yaml.safe_dump(recipe))
    words = ["train", str(tmp_path / "recipe.yaml")]
    flags = [[word for key, value in change.items() for word in (f"--{key}", value)] for change in REFUSED.values()]
    lines = [[*words, "--print-config"], *([*words, "--dry-run", *given] for given in flags)]
    (tmp_path / "lines.json").write_text(json.dumps(lines))
    answers = done(base, tmp_path / "run", tmp_path / "lines.json").stdout.splitlines()
    (code, printed, _), *refused = map(json.loads, answers)
    assert code == 0
    again = yaml.safe_load(printed)
    assert again == recipe
    assert again["objective"] == {"kind": "verdicts", "head": "odd", "near": 0.1}
    assert again["data"] == {"kind": "coins", "rows": 8, "vocabulary": 32}
    assert again["evaluation"]["metrics"] == [{"kind": "hits", "name": None, "head": "odd"}]
    for says, (code, out, err) in zip(REFUSED, refused, strict=True):
        assert code == 2, (says, out, err)
        assert says in err


def test_a_file_alone_brings_nothing_from_outside(whole: Path) -> None:
    """A program that has not registered the head refuses the model by the name of the part."""
    code = f"import orrery; orrery.load({str(whole / 'final')!r})"
    refused = programs.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (
        "'__main__.Verdict' is not a kind of this package, nor one that this program has registered" in refused.stderr
    )


def test_names_are_given_once() -> None:
    class Named(CausalLanguageModel):
        """Takes the name of a part of the package."""

    class Unnamed(CausalLanguageModel):
        """Has settings without a name."""

        class Settings(Section):
            """No kind."""

            rate: Literal[1] = 1

    with pytest.raises(UsageError, match=r"causal is taken: orrery\.objectives\.causal is the objective"):
        OBJECTIVES.register(Named)
    with pytest.raises(UsageError, match="no kind with a name as its default"):
        OBJECTIVES.register(Unnamed)
    with pytest.raises(UsageError, match="no objective called 'casual'; known: autoencoder, "):
        OBJECTIVES.find("casual")
