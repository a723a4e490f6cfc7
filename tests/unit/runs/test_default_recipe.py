"""A text without a recipe: one is chosen by its size, printed, and trained; and the same from Python."""

import itertools
import json
import signal
import sys
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

import orrery
from orrery.cli.train.app import train
from orrery.errors import DataError, OrreryError, UsageError
from orrery.recipes.config import Recipe
from orrery.recipes.read import flatten, load_recipe, plain
from orrery.runs import train as runs_train
from orrery.runs.assemble import assemble
from orrery.runs.default_recipe import BEGUN, SIZES, is_text, recipe_for
from orrery.runs.run import Run
from tiny_models import TEXT, saved
from training_toy import toy_recipe

SHORT = ("--training.steps", "4", "--evaluation.every", "2", "--checkpoints.every", "2", "--logging.every", "1")


WORDS = ["".join(letters) for letters in itertools.product("bdfgklmnprst", "aeiou", "bdfgklmnprst", "aeiou")]


def notes(folder, size, files=3):
    """Write files of words that come again and again, the more different ones the longer the text."""
    folder.mkdir(exist_ok=True)
    known = WORDS[: max(61, size // 100)]
    words = " ".join(
        known[i * i % len(known)] if i % 2 else known[i % len(known)] for i in range(size // files // 5 + 1)
    )
    for number in range(files):
        (folder / f"{number}.txt").write_text(words[: size // files], encoding="utf-8")
    return folder


def test_the_model_grows_with_the_text(tmp_path):
    recipes = [recipe_for(notes(tmp_path / str(size), size)) for size in (5_000, 100_000, 900_000)]
    widths = [recipe.model.config["hidden_size"] for recipe in recipes]
    assert widths == [96, 128, 192]
    assert [recipe.tokenizer.vocabulary for recipe in recipes] == [None, 512, 2048]
    assert [size.bytes for size in SIZES] == sorted(size.bytes for size in SIZES)


def test_the_size_of_the_demos_text_has_the_demos_model():
    demo = load_recipe(Path(orrery.__file__).parent / "studies" / "demo" / "recipe.yaml", (), {})
    config, size = demo.model.config, next(size for size in SIZES if size.bytes == 2_000_000)
    assert (size.width, size.layers, size.heads, size.length, size.vocabulary) == (
        config["hidden_size"], config["num_hidden_layers"], config["num_attention_heads"],
        config["max_position_embeddings"], demo.tokenizer.vocabulary,
    )  # fmt: skip


def test_the_rate_falls_as_the_model_grows_and_is_least_for_one_that_has_learnt(tmp_path):
    assert sorted(size.width for size in SIZES) == [size.width for size in SIZES]
    rates = [size.rate for size in SIZES]
    assert rates == sorted(rates, reverse=True)
    assert rates[0] > rates[-1] > BEGUN
    text = notes(tmp_path / "text", 5_000)
    assert recipe_for(text).training.optimizer.rate == rates[0]
    begun = ["--model.from", str(saved(tmp_path / "model", "gpt2"))]
    assert recipe_for(text, begun).training.optimizer.rate == BEGUN


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
    for name in ("recipe.yaml", "recipe.json", "recipe", "notes"):
        (tmp_path / name).write_text("name: a", encoding="utf-8")
        assert not is_text(tmp_path / name)
    assert not is_text(tmp_path / "nothing.txt")
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
    monkeypatch.chdir(tmp_path)
    run = orrery.train(text, "run", quiet=True)
    monkeypatch.chdir(tmp_path.parent)  # the run is found again wherever the program goes
    assert isinstance(run, Run)
    assert (run.step, run.folder) == (2, tmp_path / "run")
    assert run.records()[-1]["step"] == 2
    assert run.load(say=lambda line: None).generate("baba", max_new_tokens=2) is not None
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
    from orrery.recipes.read import as_yaml

    return as_yaml(recipe_for(notes(tmp_path / "notes", 5_000), SHORT))


@pytest.mark.parametrize(
    "text",
    ["hello world, these are the same words\n" * 900, "GATTACA" * 9000, "の日本語の文章です。" * 3000, "a " * 40_000],
    ids=["seven words", "no spaces", "Japanese", "one letter"],
)
def test_a_text_that_repeats_itself_gets_a_vocabulary_that_it_can_fill(tmp_path, text):
    (tmp_path / "text.txt").write_text(text, encoding="utf-8")
    recipe = recipe_for(tmp_path / "text.txt")
    assert recipe.tokenizer.kind == "character"
    assert assemble(recipe).tokenizer.size >= 2


def test_as_many_ids_are_asked_for_as_words_come_again(tmp_path):
    words = ["".join(pair) + "x" for pair in itertools.product("abcdefghijklmnop", repeat=2)][:200]
    (tmp_path / "text.txt").write_text(" ".join(words * 40), encoding="utf-8")
    recipe = recipe_for(tmp_path / "text.txt")
    assert recipe.tokenizer.vocabulary == 456
    assert assemble(recipe).tokenizer.size == 456


def test_a_table_is_read_as_the_flags_say(tmp_path):
    table = tmp_path / "notes.csv"
    table.write_text("id,said\n" + "".join(f"{n},some words about the number {n % 9}\n" for n in range(300)))
    with pytest.raises(DataError, match="no column 'text'"):
        recipe_for(table)
    recipe = recipe_for(table, ["--data.column", "said"])
    assert recipe.data.column == "said"
    assert recipe.data.split.every == 20


BAD = ("5", "x", "[1]", "{a: 1}", "null", "true", "-1", "1e99", "''", "2000-01-01", "{from: x}")


def test_no_value_of_any_key_ends_in_a_defect(tmp_path):
    text = notes(tmp_path / "notes", 5_000)
    keys = flatten(plain(recipe_for(text)))
    sections = {key.rpartition(".")[0] for key in keys} - {""}
    for key, value in itertools.product(sorted({*keys, *sections, "model.from", "data.mixture", "data.pairs"}), BAD):
        with suppress(OrreryError):
            assert isinstance(recipe_for(text, [f"--{key}={value}"]), Recipe), (key, value)


def test_a_run_without_a_folder_is_named_after_its_recipe(tmp_path, monkeypatch):
    monkeypatch.setenv("ORRERY_RUNS", str(tmp_path / "runs"))
    called = []

    def executed(recipe, folder, reporter, **how):
        called.append((folder, how["resume"], how["overwrite"]))
        return SimpleNamespace(signal=None, step=1, best=None)

    monkeypatch.setattr(runs_train, "execute", executed)
    recipe = toy_recipe()
    assert runs_train.train(recipe).folder == tmp_path / "runs" / recipe.name
    assert runs_train.train(recipe, tmp_path / "mine").folder == tmp_path / "mine"
    assert called == [(tmp_path / "runs" / recipe.name, False, False), (tmp_path / "mine", False, False)]
