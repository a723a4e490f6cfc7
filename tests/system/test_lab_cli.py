"""The verb ``orrery lab``."""

import json

import pytest

from orrery.cli.program import run
from orrery_course.labs import bottleneck
from orrery_course.labs._lab import questions


def test_it_lists_every_question(capsys) -> None:
    assert run(["lab"]) == 0
    listed = capsys.readouterr().out
    assert all(name in listed and question in listed for name, question in questions().items())


def test_it_leaves_figure_and_numbers(tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.setenv("ORRERY_RUNS", str(tmp_path))
    assert run(["lab", "bottleneck", "--quick", "--seeds", "4", "5"]) == 0
    numbers = json.loads((tmp_path / "lab-bottleneck" / "numbers.json").read_text(encoding="utf-8"))
    assert list(numbers["seeds"]) == ["4", "5"]
    assert numbers["quick"] is True
    assert min(numbers["margins"].values()) >= 0
    assert (tmp_path / "lab-bottleneck" / "figure.svg").read_text(encoding="utf-8").startswith("<svg")
    said = capsys.readouterr().out
    assert "holds" in said
    assert "chain, RNN, 8" in said


def test_a_claim_that_fails_is_exit_1_and_its_numbers_stay(tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.setitem(bottleneck.MODELS, "Transformer", bottleneck.MODELS["RNN"])
    assert run(["lab", "bottleneck", "--quick", "--seeds", "0", "--output", str(tmp_path / "x")]) == 1
    assert "the Transformer's chain is the same for every length" in capsys.readouterr().err
    assert (tmp_path / "x" / "numbers.json").exists()


@pytest.mark.parametrize(("words", "why"), [(["nope"], "no lab 'nope'"), (["bottleneck", "--seeds", "x"], "seeds")])
def test_what_cannot_run_is_usage(words: list[str], why: str, capsys) -> None:
    assert run(["lab", *words]) == 2
    assert why in capsys.readouterr().err
