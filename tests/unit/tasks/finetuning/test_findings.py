"""Findings of a fine-tuning: scores with intervals, floors, several seeds, and a page that escapes everything."""

import json

import pytest

from made_pages import MADE
from orrery.scores.classification import accuracy
from orrery.tasks.finetuning.findings import Findings, Mistake, Several
from orrery.tasks.finetuning.page import LONGEST, SHOWN, page
from orrery.tasks.tagging import are_entities


def findings(**more):
    gold, said = ["a", "b", "a", "b"], ["a", "b", "b", "b"]
    return Findings(
        scores=(accuracy(said, gold),),
        examples="4 texts held back",
        floors=[("the most frequent label", accuracy(["a"] * 4, gold))],
        **more,
    )


def test_lines_have_the_score_its_interval_and_the_floor():
    lines = findings().lines()
    assert lines[0].startswith("4 texts held back: accuracy 0.7500")
    assert "95 % interval" in lines[1]
    assert lines[-1] == "  floor, the most frequent label: 0.5000"


def test_the_same_is_said_in_json():
    content = json.loads(findings().as_json())
    (score,) = content["scores"]
    assert (score["name"], score["score"], score["level"]) == ("accuracy", 0.75, 0.95)
    assert score["low"] <= 0.75 <= score["high"]
    assert content["floors"][0]["score"] == 0.5


def test_one_example_has_no_interval():
    single = Findings(scores=(accuracy(["a"], ["a"]),), examples="1 text held back")
    assert len(single.lines()) == 1
    assert "low" not in json.loads(single.as_json())["scores"][0]


def test_several_seeds_have_a_mean_and_a_spread():
    several = Several("accuracy", [0.7, 0.8, 0.9], [1, 2, 3])
    assert several.mean == pytest.approx(0.8)
    assert several.spread == pytest.approx(0.1)
    assert str(several).startswith("accuracy of 3 seeds: mean 0.8000, spread 0.1000: 0.7000 (1)")
    assert Several("accuracy", [0.7], [1]).spread == 0


def test_the_page_shows_all_and_runs_nothing():
    wrong = [Mistake("<script>alert(1)</script>", "a<b", "b", 0.9)]
    shown_findings = findings(
        confusion=(["a", "b"], [[1, 1], [0, 2]]), mistakes=wrong, by_label=[("a", 1.0, 0.5, 2 / 3, 2)]
    )
    records = [{"step": 1, "train/loss": 1.0}, {"step": 2, "train/loss": 0.5, "val/loss": 0.7}]
    text = page("a & b", shown_findings, records, [("seed", "1337")], MADE)
    assert "<script>" not in text
    for part in (
        "a &amp; b",
        "&lt;script&gt;",
        "What is taken for what",
        "Label by label",
        "The worst mistakes",
        "1337",
    ):
        assert part in text
    assert page("a & b", shown_findings, records, [("seed", "1337")], MADE) == text


def test_the_page_shows_the_worst_mistakes_and_the_beginning_of_long_texts():
    wrong = [Mistake(f"text {n}: {'long ' * LONGEST}", "a", "b") for n in range(SHOWN + 3)]
    text = page("many", findings(mistakes=wrong), [], [], MADE)
    assert [n for n in range(len(wrong)) if f"<td>text {n}: " in text] == list(range(SHOWN))
    assert f"<td>{wrong[0].text[:LONGEST]}</td>" in text


@pytest.mark.parametrize(
    ("labels", "entities"),
    [(["O", "B-x", "I-x"], True), (["B-x"], True), (["O"], False), (["NOUN", "VERB"], False), (["O", "x"], False)],
)
def test_labels_of_entities_are_told_from_others(labels, entities):
    assert are_entities(labels) is entities
