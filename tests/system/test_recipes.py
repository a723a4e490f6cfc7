"""Every recipe of the repository runs: five steps, an evaluation, a model that loads."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

import programs
from orrery.cli.program import run
from orrery.data import generated
from orrery.language_model.load import load
from orrery.models.word2vec.files import read_vectors
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
    found = programs.run([*ORRERY, "train", recipe, *flags], capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    assert "100,000 steps" in found.stdout
    assert "at most 25,000 positions" in found.stdout
    assert not (tmp_path / "run").exists()


def sets_of(data: dict[str, Any]) -> set[str]:
    """Return the named sets that a recipe reads."""
    sources = [data.get("train"), data.get("pairs"), *(each["train"] for each in data.get("mixture", []))]
    names = {source.partition("/")[0] for source in sources if source}
    if "factbook-questions" in names:
        names.add("factbook")
    return names - {"python-docs", *generated.names()}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of runs, so that what several recipes begin from is trained once."""
    return tmp_path_factory.mktemp("runs")


def five_steps(recipe: Path, folder: Path, data_set: Callable[[str], Path]) -> Path:
    """Train five steps, before it those of the recipe that it begins from, and return the run."""
    if (folder / recipe.stem).is_dir():
        return folder / recipe.stem
    values = yaml.safe_load(recipe.read_text())
    for name in sets_of(values["data"]):
        data_set(name)
    few = ["--training.steps", "5", "--training.schedule.warmup", "2", "--evaluation.batches", "1"]
    if begin := values["model"].get("from"):
        few += ["--model.from", str(five_steps(recipe.with_name(f"{Path(begin).name}.yaml"), folder, data_set))]
    judges = [reward for reward in values.get("rewards", []) if "model" in reward]
    for reward in judges:
        judge = recipe.with_name(f"{Path(reward['model']).name}.yaml")
        few += ["--rewards", yaml.safe_dump([{**reward, "model": str(five_steps(judge, folder, data_set))}])]
    few += ["--output", str(folder / recipe.stem)]
    found = programs.run([*ORRERY, "train", recipe, *few], capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    return folder / recipe.stem


@pytest.mark.slow
@pytest.mark.parametrize("recipe", sorted({*RECIPES} - {*WORD_VECTORS, *GIVEN}), ids=lambda path: path.stem)
def test_five_steps(recipe: Path, data_set: Callable[[str], Path], runs: Path) -> None:
    model = load(five_steps(recipe, runs, data_set))
    if not model.model.spec.writes or yaml.safe_load(recipe.read_text()).get("task") == "reward":
        return
    found = model.search(["The"], num_beams=2, max_new_tokens=3)
    assert found[0][0].hypothesis.ids  # after five steps it may well be the end of the text


@pytest.mark.parametrize("recipe", STAGED, ids=lambda path: path.stem)
def test_stages_are_planned(recipe: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["train", str(recipe), "--dry-run"]) == 0
    assert f"stage 1 of {len(yaml.safe_load(recipe.read_text())['stages'])}: " in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("recipe", LADDERS, ids=lambda path: path.stem)
def test_ladders_are_planned(recipe: Path, data_set: Callable[[str], Path], capsys: pytest.CaptureFixture[str]) -> None:
    for name in sets_of(yaml.safe_load(recipe.read_text())["data"]):
        data_set(name)
    assert run(["ladder", str(recipe), "--dry-run"]) == 0
    assert "of training in all" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize("recipe", WORD_VECTORS, ids=lambda path: path.stem)
def test_one_epoch_of_word_vectors(recipe: Path, data_set: Callable[[str], Path], tmp_path: Path) -> None:
    source = yaml.safe_load(recipe.read_text())["data"]["train"]
    if source != "python-docs":
        data_set(source.partition("/")[0])
    few = ["--training.epochs", "1", "--output", str(tmp_path / "run")]
    found = programs.run([*ORRERY, "train", recipe, *few], capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    assert len(read_vectors(tmp_path / "run").words) > 1000
