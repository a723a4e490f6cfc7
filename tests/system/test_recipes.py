"""Every recipe of the repository runs: five steps, an evaluation, a model that loads."""

import lzma
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

import programs
from made_once import made_once
from orrery.cli.program import run
from orrery.data import generated
from orrery.language_model.load import load
from orrery.models.word2vec.files import read_vectors
from orrery.settings import data_folder
from programs import ORRERY

EVERY = sorted((Path(__file__).parents[2] / "recipes").glob("*.yaml"))
STAGED = [path for path in EVERY if "stages" in yaml.safe_load(path.read_text())]
LADDERS = [path for path in EVERY if "ladder" in yaml.safe_load(path.read_text())]
RECIPES = [path for path in EVERY if path not in (*STAGED, *LADDERS)]
WORD_VECTORS = [path for path in RECIPES if yaml.safe_load(path.read_text()).get("kind") == "word2vec"]

GIVEN = [path for path in RECIPES if isinstance(yaml.safe_load(path.read_text())["data"].get("pairs"), dict)]
"""Recipes whose data the user names by flags."""


@pytest.mark.parametrize("recipe", GIVEN, ids=lambda path: path.stem)
def test_a_recipe_of_given_files_is_planned_for_any_two(recipe: Path, tmp_path: Path) -> None:
    lines = {
        "en": ["a dog runs", "a cat sleeps", "the dog sees the cat"],
        "de": ["ein Hund", "eine Katze", "er sieht sie"],
    }
    flags = ["--dry-run", "--tokenizer.vocabulary", "270", "--output", str(tmp_path / "run")]
    flags += ["--model.config.num_layers", "1", "--model.config.d_ff", "64"]  # the size is held by that of the preset
    for side, language in (("source", "en"), ("target", "de")):
        (tmp_path / language).write_text("\n".join(lines[language] * 20) + "\n")
        flags += [f"--data.{part}.{side}={tmp_path / language}" for part in ("pairs", "val")]
    done = programs.run([*ORRERY, "train", recipe, *flags], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "100,000 steps" in done.stdout
    assert "at most 25,000 positions" in done.stdout
    assert not (tmp_path / "run").exists()


def sets_of(data: dict[str, Any]) -> set[str]:
    """Return the named sets that a recipe reads."""
    sources = [data.get("train"), data.get("pairs"), *(each["train"] for each in data.get("mixture", []))]
    names = {source.partition("/")[0].partition("[")[0] for source in sources if source}
    if "factbook-questions" in names:
        names.add("factbook")
    return names - {"python-docs", *generated.names()}


LARGE = {"eltec-novels": 40, "python-peps": 8}
"""Sets that take half a minute to read, and which part of their documents five steps are given; whole they are read in
``tests/unit/data/test_named_sets.py``."""


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of all data sets, with only the first documents of the large ones."""
    return made_once(tmp_path_factory, "data", few_documents)


def few_documents(folder: Path) -> None:
    """Write the data sets that five steps read."""
    folder.mkdir()
    for place in data_folder().resolve().iterdir() if data_folder().is_dir() else ():
        if place.name not in LARGE:
            (folder / place.name).symlink_to(place)
            continue
        (folder / place.name).mkdir()
        for file in place.glob("*.xz"):
            with lzma.open(file) as whole, lzma.open(folder / place.name / file.name, "w", preset=0) as few:
                lines = whole.readlines()
                few.writelines(lines[: -(-len(lines) // LARGE[place.name])])


@dataclass(frozen=True)
class Runs:
    """What recipes are trained by, each once, also where several begin from it."""

    factory: pytest.TempPathFactory
    data_set: Callable[[str], Path]
    data: Path

    def of(self, recipe: Path) -> Path:
        """Train five steps, before it those of the recipe that it begins from, and return the run."""
        for name in sets_of(yaml.safe_load(recipe.read_text())["data"]):
            self.data_set(name)
        return made_once(self.factory, f"run-{recipe.stem}", lambda folder: five_steps(recipe, folder, self))


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory, data_set: Callable[[str], Path], data: Path) -> Runs:
    return Runs(tmp_path_factory, data_set, data)


def train(recipe: Path, folder: Path, data: Path, *flags: str) -> None:
    """Run the program on a recipe."""
    environment = {**os.environ, "ORRERY_DATA": str(data)}
    words = [*ORRERY, "train", recipe, *flags, "--output", folder]
    done = programs.run(words, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def five_steps(recipe: Path, folder: Path, runs: Runs) -> None:
    """Train five steps into a folder."""
    values = yaml.safe_load(recipe.read_text())
    few = ["--training.steps", "5", "--training.schedule.warmup", "2", "--evaluation.batches", "1"]
    if begin := values["model"].get("from"):
        key, name = ("from.encoder", begin["encoder"]) if isinstance(begin, dict) else ("from", begin)
        few += [f"--model.{key}", str(runs.of(recipe.with_name(f"{Path(name).name}.yaml")))]
    judges = [reward for reward in values.get("rewards", []) if "model" in reward]
    for reward in judges:
        judge = recipe.with_name(f"{Path(reward['model']).name}.yaml")
        few += ["--rewards", yaml.safe_dump([{**reward, "model": str(runs.of(judge))}])]
    train(recipe, folder, runs.data, *few)


TRAINED = [
    pytest.param(path, marks=pytest.mark.long if path.stem.endswith("-gpu") else (), id=path.stem)
    for path in sorted({*RECIPES} - {*WORD_VECTORS, *GIVEN})
]
"""A model for a GPU takes minutes for its five steps on a processor."""


@pytest.mark.slow
@pytest.mark.parametrize("recipe", TRAINED)
def test_five_steps(recipe: Path, runs: Runs) -> None:
    model = load(runs.of(recipe))
    if not model.model.spec.writes or yaml.safe_load(recipe.read_text()).get("task") == "reward":
        return
    if "images" in model.model.spec.inputs:
        assert isinstance(model.caption(np.zeros((9, 9, 3), np.uint8), max_new_tokens=3), str)
        return
    answers = model.search(["The"], num_beams=2, max_new_tokens=3)
    assert answers[0][0].hypothesis.ids  # after five steps it may well be the end of the text


@pytest.mark.parametrize("recipe", STAGED, ids=lambda path: path.stem)
def test_stages_are_planned(recipe: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["train", str(recipe), "--dry-run"]) == 0
    assert f"stage 1 of {len(yaml.safe_load(recipe.read_text())['stages'])}: " in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("recipe", LADDERS, ids=lambda path: path.stem)
def test_ladders_are_planned(
    recipe: Path,
    data_set: Callable[[str], Path],
    data: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name in sets_of(yaml.safe_load(recipe.read_text())["data"]):
        data_set(name)
    monkeypatch.setenv("ORRERY_DATA", str(data))
    assert run(["ladder", str(recipe), "--dry-run"]) == 0
    assert "of training in all" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("recipe", WORD_VECTORS, ids=lambda path: path.stem)
def test_one_epoch_of_word_vectors(recipe: Path, data_set: Callable[[str], Path], data: Path, tmp_path: Path) -> None:
    source = yaml.safe_load(recipe.read_text())["data"]["train"]
    if source != "python-docs":
        data_set(source.partition("/")[0])
    train(recipe, tmp_path / "run", data, "--training.epochs", "1")
    assert len(read_vectors(tmp_path / "run").words) > 1000
