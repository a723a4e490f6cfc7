"""A text without a recipe: one is chosen by its size, printed, and trained; and the same from Python."""

import json
import signal
import sys

import pytest
import yaml

import orrery
from orrery.cli.train.app import train
from orrery.errors import DataError, UsageError
from orrery.runs.default_recipe import SIZES, is_text, recipe_for
from orrery.runs.run import Run
from orrery.training.assemble import assemble
from tiny_models import TEXT, saved

SHORT = ("--training.steps", "4", "--evaluation.every", "2", "--checkpoints.every", "2", "--logging.every", "1")


def notes(folder, size, files=3):
    folder.mkdir(exist_ok=True)
    for number in range(files):
        words = " ".join(f"word{(number * 7 + i * i) % 61}" for i in range(size // files // 7 + 1))
        (folder / f"{number}.txt").write_text(words[: size // files], encoding="utf-8")
    return folder


def test_the_model_grows_with_the_text(tmp_path):
    found = [recipe_for(notes(tmp_path / str(size), size)) for size in (5_000, 100_000, 900_000)]
    widths = [recipe.model.config["hidden_size"] for recipe in found]
    assert widths == [96, 128, 192]
    assert [recipe.tokenizer.vocabulary for recipe in found] == [None, 512, 2048]
    assert [size.bytes for size in SIZES] == sorted(size.bytes for size in SIZES)


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size.width} wide")
def test_every_size_is_a_model_that_can_be_built(size):
    assert size.width % size.heads == 0
    assert size.steps // 15 < size.steps


def test_many_documents_are_held_back_whole(tmp_path):
    assert recipe_for(notes(tmp_path / "many", 60_000, files=120)).data.split.every == 20
    assert recipe_for(notes(tmp_path / "few", 60_000)).data.split.tail == 0.1


def test_it_is_named_after_the_text_and_can_be_changed(tmp_path):
    recipe = recipe_for(notes(tmp_path / "my notes", 5_000), ["--training.steps", "7"], {"ORRERY_SEED": "3"})
    assert (recipe.name, recipe.training.steps, recipe.seed) == ("my-notes", 7, 3)


def test_the_verb_prints_the_recipe_and_trains_with_it(tmp_path, capsys):
    text = notes(tmp_path / "notes", 5_000)
    assert train(text, *SHORT, output=tmp_path / "run") == 0
    said = capsys.readouterr().out
    assert "no recipe was given" in said
    assert yaml.safe_load(said)["training"]["steps"] == 4
    assert yaml.safe_load((tmp_path / "run" / "config.yaml").read_text())["data"]["train"] == str(text)
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert "val/bpb" in lines[-1]
    assert train(text, *SHORT, print_config=True) == 0
    assert train(text, *SHORT, dry_run=True) == 0


def test_one_file_is_a_text_too_and_a_run_is_none(tmp_path):
    file = tmp_path / "book.txt"
    file.write_text(TEXT * 80, encoding="utf-8")
    assert is_text(file)
    assert recipe_for(file).name == "book"
    assert not is_text(tmp_path / "recipe.yaml")
    with pytest.raises(UsageError, match="holds a model"):
        recipe_for(saved(tmp_path / "model", "gpt2"))
    (tmp_path / "little.txt").write_text("hello", encoding="utf-8")
    with pytest.raises(DataError, match="5 bytes"):
        recipe_for(tmp_path / "little.txt")


def test_a_text_and_a_model_to_begin_from(tmp_path):
    base = saved(tmp_path / "base", "gpt2")
    flags = ["--model.from", str(base), "--batches.length", "32"]
    recipe = recipe_for(notes(tmp_path / "notes", 5_000), flags)
    assert recipe.model.begin == str(base)
    assert recipe.tokenizer is None
    assert recipe.training.optimizer.rate == 3e-4
    assert "tensors loaded" in assemble(recipe).parts.notes[0]


def test_python_does_what_the_verb_does(tmp_path, monkeypatch):
    monkeypatch.setenv("ORRERY_TRAINING__STEPS", "2")
    text = notes(tmp_path / "notes", 5_000)
    run = orrery.train(text, tmp_path / "run", quiet=True)
    assert isinstance(run, Run)
    assert (run.step, run.folder) == (2, tmp_path / "run")
    assert run.records()[-1]["step"] == 2
    assert run.load(say=lambda line: None).generate("word1", max_new_tokens=2) is not None
    values = yaml.safe_load((tmp_path / "run" / "config.yaml").read_text())
    again = orrery.train(values, tmp_path / "again", quiet=True)
    same = "final/model.safetensors"
    assert (again.folder / same).read_bytes() == (run.folder / same).read_bytes()
    with pytest.raises(UsageError, match="--overwrite"):
        orrery.train(values, tmp_path / "again", quiet=True)
    longer = {**values, "training": {**values["training"], "steps": 4}}
    assert orrery.train(longer, tmp_path / "again", resume=True, quiet=True).step == 4


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_a_signal_saves_the_run_and_is_passed_on(tmp_path, monkeypatch):
    from orrery.training.loop import Trainer

    values = yaml.safe_load(orrery_yaml(tmp_path))
    update = Trainer._update

    def interrupted(self):
        update(self)
        if self.progress.step == 2:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Trainer, "_update", interrupted)
    with pytest.raises(KeyboardInterrupt):
        orrery.train(values, tmp_path / "run", quiet=True)
    monkeypatch.undo()
    assert orrery.train(values, tmp_path / "run", resume=True, quiet=True).step == 4


def orrery_yaml(tmp_path):
    from orrery.training.recipes import as_yaml

    return as_yaml(recipe_for(notes(tmp_path / "notes", 5_000), SHORT))
