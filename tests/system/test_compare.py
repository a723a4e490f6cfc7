"""``orrery compare``: on a toy text in seconds, stopped and continued, and its refusals."""

import json
from pathlib import Path

import numpy as np
import pytest
import yaml

from demo_toy import write_ring
from orrery.cli.compare import BASE
from orrery.cli.program import run
from orrery.compare import run as lab
from orrery.compare.texts import read
from orrery.language_model.load import load
from orrery.models.ngram import TokenNgram
from orrery.tasks.floors import model_bits_per_byte
from orrery.training.loop import Trainer
from orrery.training.recipes import load_recipe

SMALL = ["--text", "ring", "--parameters", "30000", "--tokenizer", "{kind: character}", "--batches.length", "16"]
SMALL += ["--batches.size", "2", "--data.split", "{every: 20}", "--training.precision", "float32"]
SMALL_RECIPE = ["--data.train", "ring", *SMALL[4:]]
CLOCK = ("seconds",)


@pytest.fixture
def place(tmp_path, monkeypatch):
    write_ring(tmp_path / "ring", documents=40, length=8)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ORRERY_RUNS", raising=False)
    return tmp_path


def models(folder="runs/compare"):
    """The entries of compare.json without what the clock says."""

    def timeless(values):
        return {key: value for key, value in values.items() if key not in CLOCK}

    found = json.loads(Path(folder, "compare.json").read_text())["models"]
    return [timeless({**entry, "curve": [timeless(point) for point in entry["curve"]]}) for entry in found]


def test_every_model_learns_the_same_text(place, capsys):
    assert run(["compare", *SMALL, "--steps", "3"]) == 0
    found = models()
    assert [entry["name"] for entry in found] == ["ngram", "nplm", "elman_rnn", "lstm", "gru", "transformer"]
    assert {entry["tokens"] for entry in found[1:]} == {3 * 2 * 16}
    assert all(abs(entry["parameters"] - 30_000) <= 600 for entry in found[1:])
    assert all(entry["perplexity"] > 1 and 0 < entry["bits_per_byte"] < 8 for entry in found)
    assert {path.name for path in Path("runs/compare").glob("*.*")} == {
        "compare.json", "compare.html", "loss-by-seconds.svg", "loss-by-tokens.svg",
    }  # fmt: skip
    lines = capsys.readouterr().out.splitlines()
    assert (
        sum(line.startswith(("ngram ", "nplm ", "elman_rnn ", "lstm ", "gru ", "transformer ")) for line in lines) == 6
    )
    assert load("runs/compare/lstm", say=lambda line: None).generate("The", max_new_tokens=2)


def test_the_bits_are_those_of_the_saved_model(place):
    assert run(["compare", *SMALL, "--steps", "2", "--models", "gru"]) == 0
    lm = load("runs/compare/gru", "cpu", "float32", say=lambda line: None)
    texts = read(load_recipe(Path("runs/compare/gru/config.yaml")), Path("runs/compare/tokenizer"))
    again = model_bits_per_byte(lm.model, texts.held_back_ids, 16, texts.size)
    assert models()[0]["bits_per_byte"] == pytest.approx(again, abs=1e-6)


def test_the_counts_are_measured_on_the_same_tokens(place):
    assert run(["compare", *SMALL, "--steps", "1", "--models", "ngram"]) == 0
    texts, entry = read(load_recipe(BASE, SMALL_RECIPE), Path("runs/compare/tokenizer")), models()[0]
    order = int(entry["description"].removeprefix("counts of 1 to ").split()[0])
    end = texts.tokenizer.special("end")
    train = [end, *np.concatenate(texts.train_ids)]
    held_back = [end, *np.concatenate(texts.held_back_ids)]
    probabilities = TokenNgram(order, texts.tokenizer.size).fit(train).probabilities(held_back)[1:]
    assert len(probabilities) == texts.held_back_tokens
    assert entry["bits_per_byte"] == pytest.approx(-np.log2(probabilities).sum() / texts.size)
    assert entry["perplexity"] == pytest.approx(np.exp(-np.log(probabilities).mean()))


@pytest.mark.parametrize("where", ["between two models", "inside a model"])
def test_stopped_and_continued_is_never_stopped(where, place, monkeypatch, capsys):
    words = ["compare", *SMALL, "--steps", "6", "--models", "ngram,nplm,lstm"]
    assert run([*words, "--output", "whole"]) == 0
    if where == "inside a model":
        stop_after(monkeypatch, step=4, family="lstm")
    else:
        monkeypatch.setattr(lab, "learn", failing(lab.learn, "lstm"))
    assert run([*words, "--output", "cut"]) == 130
    assert [entry["name"] for entry in models("cut")] == ["ngram", "nplm"]
    monkeypatch.undo()
    monkeypatch.chdir(place)
    capsys.readouterr()
    assert run([*words, "--output", "cut", "--resume"]) == 0
    assert "nplm: done before" in capsys.readouterr().out
    assert models("cut") == models("whole")


def failing(learn, name):
    def interrupted(recipe, *others):
        if recipe.name == name:
            raise KeyboardInterrupt
        return learn(recipe, *others)

    return interrupted


def stop_after(monkeypatch, step, family):
    """Let the signal arrive after a step, as Ctrl-C does."""
    update = Trainer._update

    def signalled(trainer):
        update(trainer)
        if trainer.recipe.name == family and trainer.progress.step == step:
            trainer.signals.received = 2

    monkeypatch.setattr(Trainer, "_update", signalled)


def test_minutes_become_steps(place):
    assert run(["compare", *SMALL, "--minutes", "0.002", "--models", "nplm"]) == 0
    found = models()[0]
    assert found["steps"] >= 1
    assert yaml.safe_load(Path("runs/compare/nplm/config.yaml").read_text())["training"]["steps"] == found["steps"]


def recipe(name, family, **changes):
    values = {
        "name": name,
        "model": {"family": family, "config": {"hidden_size": 16, "max_position_embeddings": 16}},
        "tokenizer": {"kind": "character"},
        "data": {"train": "ring", "split": {"every": 20}},
        "batches": {"length": 16, "size": 2},
        "training": {"steps": 100, "optimizer": {"rate": 0.01}, "precision": "float32"},
        **changes,
    }
    Path(f"{name}.yaml").write_text(yaml.safe_dump(values))
    return f"{name}.yaml"


def test_recipes_are_compared_as_they_are(place):
    words = [recipe("small", "gru"), recipe("bengio", "nplm"), "--models", "ngram", "--steps", "2"]
    assert run(["compare", *words]) == 0
    found = models()
    assert [entry["name"] for entry in found] == ["ngram", "small", "bengio"]
    assert "hidden_size 16" in found[1]["description"]
    assert found[1]["steps"] == 2


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--models", "bert"], 2, "'bert' is not a model"),
        (["--models", ","], 2, "cannot compare no models"),
        (["--minutes", "0"], 2, "--minutes 0 is out of range"),
        (["--minutes", "1", "--steps", "1"], 2, "one budget"),
        (["--steps", "1", "--parameters", "20"], 2, "has 20 parameters to within 2 %"),
        (["--steps", "1", "--data.train", "no.txt"], 3, "no.txt"),
        (["--steps", "1", "--data.split", "{every: 100000}"], 3, "holds nothing back"),
        (["--steps", "1", "--trainng.steps", "1"], 2, "did you mean 'training'?"),
    ],
)
def test_a_mistake_is_an_error_a_hint_and_a_code(words, code, message, place, capsys):
    small = [] if "--data.train" in words else ["--text", "ring", "--tokenizer", "{kind: character}"]
    assert run(["compare", *small, *words]) == code
    found = capsys.readouterr().err
    assert message in found
    assert "hint: " in found


def test_recipes_on_other_texts_or_with_a_size_are_refused(place, capsys):
    first = recipe("small", "gru")
    other = recipe("other", "gru", tokenizer={"kind": "word"})
    assert run(["compare", first, other, "--steps", "1"]) == 2
    assert "other: its tokenizer is not that of small" in capsys.readouterr().err
    assert run(["compare", first, "--parameters", "5"]) == 2
    assert "their own number of parameters" in capsys.readouterr().err


def test_only_resume_finds_something_in_the_folder_and_only_the_same(place, capsys):
    words = ["compare", *SMALL, "--models", "ngram"]
    assert run([*words, "--steps", "1"]) == 0
    assert run([*words, "--steps", "1"]) == 2
    assert "add --resume" in capsys.readouterr().err
    assert run([*words, "--steps", "2", "--resume"]) == 2
    assert "--resume: steps was 1 and is now 2" in capsys.readouterr().err
    (place / "ring" / "00.txt").write_text("another text")
    assert run([*words, "--steps", "1", "--resume"]) == 3
    assert "the text is not the one" in capsys.readouterr().err
    Path("runs/compare/compare.json").write_text("[]")
    assert run([*words, "--steps", "1", "--resume"]) == 2
    assert "is not of a comparison" in capsys.readouterr().err
