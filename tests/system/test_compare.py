"""``orrery compare``: on a toy text in seconds, stopped and continued, and its refusals."""

import json
from pathlib import Path

import numpy as np
import pytest
import yaml

from demo_toy import write_ring
from orrery.cli.compare import BASE
from orrery.cli.program import run
from orrery.evaluation.floors import model_bits_per_byte
from orrery.language_model.load import load
from orrery.models.ngram import TokenNgram
from orrery.recipes.read import load_recipe
from orrery.studies.compare import run as lab
from orrery.studies.compare.findings import Trial
from orrery.studies.compare.models import MODELS
from orrery.studies.compare.probes import costs
from orrery.studies.compare.texts import read
from orrery.studies.compare.trials import Trials
from orrery.training.loop import Trainer

SMALL = ["--text", "ring", "--parameters", "30000", "--tokenizer", "{kind: character}", "--batches.length", "16"]
SMALL += ["--batches.size", "2", "--data.split", "{every: 20}", "--training.precision", "float32"]
SMALL_RECIPE = ["--data.train", "ring", *SMALL[4:]]
CLOCK = ("seconds",)
PLAIN = ["--sweep", "0", "--probes", "none"]


@pytest.fixture
def place(tmp_path, monkeypatch):
    write_ring(tmp_path / "ring", documents=40, length=8)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ORRERY_RUNS", raising=False)
    return tmp_path


def timeless(values):
    """JSON values without what the clock says."""
    if isinstance(values, dict):
        return {key: timeless(value) for key, value in values.items() if key not in CLOCK}
    return [timeless(value) for value in values] if isinstance(values, list) else values


def result(folder="runs/compare"):
    return timeless(json.loads(Path(folder, "compare.json").read_text()))


def models(folder="runs/compare"):
    return result(folder)["models"]


@pytest.mark.parametrize("names", [("ngram", "lstm", "gla"), pytest.param(MODELS, marks=pytest.mark.slow, id="all")])
def test_every_model_learns_the_same_text(names, place, capsys):
    few = [] if names == MODELS else ["--models", ",".join(names)]
    assert run(["compare", *SMALL, *PLAIN, *few, "--steps", "2"]) == 0
    entries = models()
    assert [entry["name"] for entry in entries] == list(names)
    assert {entry["tokens"] for entry in entries[1:]} == {2 * 2 * 16}
    assert all(abs(entry["parameters"] - 30_000) <= 600 for entry in entries[1:])
    assert all(entry["perplexity"] > 1 and 0 < entry["bits_per_byte"] < 8 for entry in entries)
    assert {path.name for path in Path("runs/compare").glob("*.*")} == {
        "compare.json", "compare.html", "loss-by-seconds.svg", "loss-by-tokens.svg",
    }  # fmt: skip
    lines = capsys.readouterr().out.splitlines()
    begun = lines.index(next(line for line in lines if line.startswith("model ")))
    assert {line.split()[0] for line in lines[begun + 1 : begun + 1 + len(names)]} == set(names)
    assert load("runs/compare/lstm/2-steps-seed-1337", say=lambda line: None).generate("The", max_new_tokens=2)


def test_the_bits_are_those_of_the_saved_model(place):
    assert run(["compare", *SMALL, *PLAIN, "--steps", "2", "--models", "gru"]) == 0
    place = Path("runs/compare/gru/2-steps-seed-1337")
    lm = load(place, "cpu", "float32", say=lambda line: None)
    texts = read(load_recipe(place / "config.yaml"), Path("runs/compare/tokenizer"), print)
    again = model_bits_per_byte(lm.model, texts.held_back_ids, 16, texts.size)
    assert models()[0]["bits_per_byte"] == pytest.approx(again, abs=1e-6)


def test_the_counts_are_measured_on_the_same_tokens(place):
    assert run(["compare", *SMALL, *PLAIN, "--steps", "1", "--models", "ngram"]) == 0
    texts, entry = read(load_recipe(BASE, SMALL_RECIPE), Path("runs/compare/tokenizer"), print), models()[0]
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
    words = ["compare", *SMALL, *PLAIN, "--steps", "6", "--models", "ngram,nplm,lstm"]
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
    Path("cut").rename("moved")
    assert run([*words, "--output", "moved", "--resume"]) == 0
    assert "nplm (6 steps, seed 1337): done before" in capsys.readouterr().out
    assert models("moved") == models("whole")


SWEPT = ["compare", *SMALL, "--probes", "none", "--models", "nplm,lstm", "--steps", "4"]
SWEPT += ["--sweep", "3", "--sweep-share", "0.5"]


def test_a_sweep_stopped_in_the_middle_gives_the_same_file(place, monkeypatch):
    words = [*SWEPT, "--hand-set"]
    assert run([*words, "--output", "whole"]) == 0
    one = Trials._one
    monkeypatch.setattr(Trials, "_one", lambda self, number, *rest: stop_at(one, self, number, *rest))
    stop_after(monkeypatch, step=1, family="lstm", only=lambda recipe: recipe.training.steps == 2)
    assert run([*words, "--output", "cut"]) == 130
    assert trials_done("cut") == {"nplm": 4}
    monkeypatch.undo()
    monkeypatch.chdir(place)
    monkeypatch.setattr(Trials, "_one", lambda self, number, *rest: stop_at(one, self, number, *rest))
    assert run([*words, "--output", "cut", "--resume"]) == 130
    assert trials_done("cut") == {"nplm": 4, "lstm": 2}
    monkeypatch.undo()
    monkeypatch.chdir(place)
    assert run([*words, "--output", "cut", "--resume"]) == 0
    assert result("cut") == result("whole")
    check_swept(result("whole"))
    assert not list(Path("whole").glob("*/sweep"))


def trials_done(folder):
    return {name: len(sweep["trials"]) for name, sweep in result(folder)["sweeps"].items()}


def test_a_sweep_without_any_loss_is_an_error_that_stays(place, monkeypatch, capsys):
    apart = Trial(0.1, 0.05, 1, 0, 0.0, None)
    monkeypatch.setattr(Trials, "_one", lambda self, number, *rest: apart)
    words = ["compare", *SMALL, "--models", "nplm", "--steps", "2", "--probes", "none"]
    for again in ([], ["--resume"]):
        assert run([*words, *again]) == 1
        assert "nplm: no trial of its sweep has a loss" in capsys.readouterr().err


def stop_at(one, trials, number, *rest):
    if trials.recipe.name == "lstm" and number == 3:
        raise KeyboardInterrupt
    return one(trials, number, *rest)


def check_swept(comparison):
    """Every model had the same trials, and each training the rate that won; the hand-set rate stands beside."""
    assert comparison["settings"]["sweep"]["trial"] == 2
    for name, sweep in comparison["sweeps"].items():
        trials = sweep["trials"]
        assert len(trials) == 4
        assert {(trial["steps"], trial["tokens"]) for trial in trials} == {(2, 2 * 32)}
        best = min(trials, key=lambda trial: trial["bits_per_byte"])
        assert sweep["chosen"] == {"rate": best["rate"], "warmup": best["warmup"]}
        centre = best["rate"] == trials[0]["rate"]
        own = [entry for entry in comparison["models"] if entry["name"] == name]
        assert [(entry["budget"], entry["seed"], entry["rate"] == best["rate"]) for entry in own] == [
            (4, 1337, True),
            (4, 1337, centre),
        ]
        assert [entry["steps"] for entry in own] == [entry["budget"] for entry in own]
        assert {entry["rate"] for entry in own[1::2]} == {trials[0]["rate"]}


def test_trials_are_judged_on_text_that_neither_they_nor_the_table_use(place):
    texts = read(load_recipe(BASE, SMALL_RECIPE), Path("tokenizer"), print)
    trained = {document.name: document.text for document in texts.source.portions[0].documents}
    heads = {document.name: document.text for document in texts.trials.portions[0].documents}
    ends = {document.name: document.text for document in texts.trials.held_back}
    assert ends
    assert heads.keys() == trained.keys()
    assert all(heads[name] + end == trained[name] for name, end in ends.items())
    assert all(trained[name].startswith(head) and len(head) < len(trained[name]) for name, head in heads.items())
    assert not ends.keys() & {document.name for document in texts.source.held_back}


def test_a_plan_is_told_without_training(place, capsys):
    words = ["compare", *SMALL, "--models", "ngram,lstm,gru", "--budgets", "1", "10", "--seeds", "0", "1", "2"]
    assert run([*words, "--dry-run", "--hand-set"]) == 0
    said = capsys.readouterr().out
    assert "6 x 1" in said
    # Two models, each with six trials of a minute, three seeds with eleven minutes, and eleven at the hand-set rate.
    assert "100.0 minutes (1.7 hours) of training for 2 models" in said
    assert not Path("runs").exists()


def test_a_comparison_may_get_seeds_and_models(place):
    words = ["compare", *SMALL, *PLAIN, "--steps", "2"]
    assert run([*words, "--models", "nplm", "--seeds", "0"]) == 0
    assert run([*words, "--models", "nplm,gru", "--seeds", "0", "1", "--resume"]) == 0
    assert [(entry["name"], entry["seed"]) for entry in models()] == [
        ("nplm", 0), ("gru", 0), ("nplm", 1), ("gru", 1),
    ]  # fmt: skip
    assert len({entry["bits_per_byte"] for entry in models()}) == 4


def test_what_the_sweep_finds_to_be_best_already_is_not_trained_twice(place):
    words = ["compare", *SMALL, "--models", "nplm", "--steps", "4", "--sweep", "1", "--warmups", "0.05"]
    assert run([*words, "--hand-set", "--probes", "none"]) == 0
    one, other = models()
    assert one == {**other, "recipe": "swept"}
    assert other["recipe"] == "hand-set beside the swept"
    assert not Path("runs/compare/nplm/4-steps-seed-1337-hand-set").exists()


def test_probes_come_last_and_may_come_later(place, monkeypatch):
    monkeypatch.setattr(costs, "LONG", (4, 8))
    words = ["compare", *SMALL, "--sweep", "0", "--steps", "2", "--models", "ngram,transformer"]
    assert run([*words, "--probes", "memory"]) == 0
    assert run([*words, "--probes", "memory,extrapolation", "--resume"]) == 0
    curves_by_probe = result()["probes"]
    assert {name: list(curves) for name, curves in curves_by_probe.items()} == {
        name: ["transformer"] for name in ("memory", "extrapolation")
    }
    assert len(curves_by_probe["extrapolation"]["transformer"]) == 8
    assert all(Path(f"runs/compare/{name}.svg").exists() for name in curves_by_probe)


def test_what_all_share_can_be_a_recipe_of_ones_own(place):
    shared = recipe("shared", "llama", training={"steps": 1, "optimizer": {"kind": "adam", "rate": 1.0}})
    words = ["--config", shared, "--models", "gru", "--parameters", "30000", "--steps", "2", *PLAIN]
    assert run(["compare", *words]) == 0
    made = yaml.safe_load(Path("runs/compare/gru/2-steps-seed-1337/config.yaml").read_text())
    assert made["training"]["optimizer"]["kind"] == "adam"
    assert made["model"]["family"] == "gru"


def failing(learn, name):
    def interrupted(job, *others):
        if job.name == name:
            raise KeyboardInterrupt
        return learn(job, *others)

    return interrupted


def stop_after(monkeypatch, step, family, only=lambda recipe: True):
    """Let the signal arrive after a step, as Ctrl-C does."""
    update = Trainer._update

    def signalled(trainer):
        update(trainer)
        if trainer.recipe.name == family and trainer.progress.step == step and only(trainer.recipe):
            trainer.signals.received = 2

    monkeypatch.setattr(Trainer, "_update", signalled)


def test_minutes_become_steps(place):
    words = ["compare", *SMALL, "--minutes", "0.002", "--models", "nplm", "--sweep", "1", "--probes", "none"]
    assert run(words) == 0
    comparison = result()
    steps = comparison["models"][0]["steps"]
    assert steps == max(1, int(0.12 * comparison["speeds"]["nplm"] / 32))
    assert {trial["steps"] for trial in comparison["sweeps"]["nplm"]["trials"]} == {
        max(1, int(0.012 * comparison["speeds"]["nplm"] / 32))
    }
    run_of = Path("runs/compare/nplm/0.002-minutes-seed-1337/config.yaml")
    assert yaml.safe_load(run_of.read_text())["training"]["steps"] == steps


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
    words = [recipe("small", "gru"), recipe("bengio", "nplm"), "--models", "ngram", "--steps", "2", *PLAIN]
    assert run(["compare", *words]) == 0
    entries = models()
    assert [entry["name"] for entry in entries] == ["ngram", "small", "bengio"]
    assert "hidden_size 16" in entries[1]["description"]
    assert entries[1]["steps"] == 2


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--models", "bert"], 2, "'bert' is not a model"),
        (["--models", ","], 2, "cannot compare no models"),
        (["--minutes", "0"], 2, "--minutes 0 is out of range"),
        (["--minutes", "1", "--steps", "1"], 2, "one kind of budget"),
        (["--steps", "5", "5"], 2, "budgets: one of 5, 5 is named twice"),
        (["--seeds", "1", "1"], 2, "--seeds: one of 1, 1 is named twice"),
        (["--warmups", "0.1", "0.1"], 2, "are not different"),
        (["--sweep-share", "0"], 2, "0 is no part of the budget"),
        (["--sweep", "0", "--warmups", "0"], 2, "--sweep 0 tries nothing"),
        (["--sweep-recipes"], 2, "there are no recipes"),
        (["--sweep", "0", "--hand-set"], 2, "no rate is swept"),
        (["--probes", "speed"], 2, "'speed' is no probe"),
        (["--steps", "1", "--parameters", "20"], 2, "has 20 parameters to within 2 %"),
        (["--steps", "1", "--data.train", "no.txt"], 3, "no.txt"),
        (["--steps", "1", "--data.split", "{every: 100000}"], 3, "holds nothing back"),
        (["--steps", "1", "--trainng.steps", "1"], 2, "did you mean 'training'?"),
    ],
)
def test_a_mistake_is_an_error_a_hint_and_a_code(words, code, message, place, capsys):
    small = [] if "--data.train" in words else ["--text", "ring", "--tokenizer", "{kind: character}"]
    assert run(["compare", *small, *words]) == code
    printed = capsys.readouterr().err
    assert message in printed
    assert "hint: " in printed


def test_recipes_on_other_texts_or_with_a_size_are_refused(place, capsys):
    first = recipe("small", "gru")
    other = recipe("other", "gru", tokenizer={"kind": "word"})
    assert run(["compare", first, other, "--steps", "1"]) == 2
    assert "other: its tokenizer is not that of small" in capsys.readouterr().err
    assert run(["compare", first, "--parameters", "5"]) == 2
    assert "their own number of parameters" in capsys.readouterr().err
    assert run(["compare", first, "--steps", "1", "--training.final", "best"]) == 2
    assert "small: training.final best chooses on the text" in capsys.readouterr().err
    assert run(["compare", first, "--config", first]) == 2
    assert "recipes have their own" in capsys.readouterr().err


def test_only_resume_finds_something_in_the_folder_and_only_the_same(place, capsys):
    words = ["compare", *SMALL, "--models", "ngram", "--probes", "none"]
    assert run([*words, "--steps", "1"]) == 0
    assert run([*words, "--steps", "1"]) == 2
    assert "add --resume" in capsys.readouterr().err
    assert run([*words, "--steps", "200", "--resume"]) == 2
    assert "--resume: sweep.trial was " in capsys.readouterr().err
    (place / "ring" / "00.txt").write_text("another text")
    assert run([*words, "--steps", "1", "--resume"]) == 3
    assert "the text is not the one" in capsys.readouterr().err
    Path("runs/compare/compare.json").write_text("[]")
    assert run([*words, "--steps", "1", "--resume"]) == 2
    assert "is not of a comparison" in capsys.readouterr().err
