"""Every recipe of the repository runs: five steps, an evaluation, a model that loads."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from orrery.language_model.load import load
from orrery.models.word2vec.files import read_vectors

RECIPES = sorted((Path(__file__).parents[2] / "recipes").glob("*.yaml"))
WORD_VECTORS = [path for path in RECIPES if yaml.safe_load(path.read_text()).get("kind") == "word2vec"]


@pytest.mark.slow
@pytest.mark.parametrize("recipe", sorted({*RECIPES} - {*WORD_VECTORS}), ids=lambda path: path.stem)
def test_five_steps(recipe: Path, data_set: Callable[[str], Path], tmp_path: Path) -> None:
    data = yaml.safe_load(recipe.read_text())["data"]
    if (named := (data.get("train") or data["pairs"]).partition("/")[0]) != "python-docs":
        data_set(named)
    few = ["--training.steps", "5", "--training.schedule.warmup", "2", "--evaluation.batches", "1"]
    few += ["--output", str(tmp_path / "run")]
    command = [sys.executable, "-m", "orrery", "train", str(recipe), *few]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    model = load(tmp_path / "run")
    if not model.model.spec.writes:
        return
    found = model.search(["The"], num_beams=2, max_new_tokens=3)
    assert found[0][0].hypothesis.ids  # after five steps it may well be the end of the text


@pytest.mark.slow
@pytest.mark.parametrize("recipe", WORD_VECTORS, ids=lambda path: path.stem)
def test_one_epoch_of_word_vectors(recipe: Path, data_set: Callable[[str], Path], tmp_path: Path) -> None:
    source = yaml.safe_load(recipe.read_text())["data"]["train"]
    if source != "python-docs":
        data_set(source.partition("/")[0])
    few = ["--training.epochs", "1", "--output", str(tmp_path / "run")]
    command = [sys.executable, "-m", "orrery", "train", str(recipe), *few]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    assert len(read_vectors(tmp_path / "run").words) > 1000
