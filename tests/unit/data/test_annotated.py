"""Classes in the layouts of annotators' tools: Label Studio, Prodigy, Doccano and spaCy."""

import json

import pytest

from orrery.data.sources.labelled import LabelledSettings, LabelledSource
from orrery.errors import DataError


def task(text, *choices, **how):
    results = [{"value": {"choices": [each]}, "from_name": "mood", "type": "choices"} for each in choices]
    return {"id": 1, "data": {"text": text}, "annotations": [{"was_cancelled": False, "result": results, **how}]}


def read(tmp_path, rows, **how):
    path = tmp_path / "x.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows))
    source = LabelledSource.read(LabelledSettings.model_validate({"train": str(path), **how}))
    return [(row.text, row.target) for row in source.train], " ".join(source.remarks())


@pytest.mark.parametrize(
    "rows",
    [
        [task("c", was_cancelled=True), task("a", "good"), task("b", "bad")],
        [{"text": "a", "mood": "good"}, {"text": "b", "mood": "bad"}],
        [{"id": 1, "text": "a", "label": ["good"], "Comments": []}, {"id": 2, "text": "b", "label": ["bad"]}],
        [
            {"text": "a", "options": [{"id": "good"}, {"id": "bad"}], "accept": ["good"], "answer": "accept"},
            {"text": "b", "options": [{"id": "good"}, {"id": "bad"}], "accept": ["bad"], "answer": "accept"},
            {"text": "c", "options": [], "accept": [], "answer": "ignore"},
        ],
        [{"text": "a", "cats": {"good": 1.0, "bad": 0.0}}, {"text": "b", "cats": {"good": 0, "bad": 1}}],
        [["a", {"cats": {"good": True, "bad": False}}], ["b", {"cats": {"good": False, "bad": True}}]],
    ],
)
def test_each_layout_gives_the_same_classes(tmp_path, rows):
    assert read(tmp_path, rows)[0] == [("a", "good"), ("b", "bad")]


def test_several_choices_are_labels(tmp_path):
    rows = [{"text": "a", "mood": {"choices": ["good", "odd"]}, "annotator": 1}, {"text": "b", "mood": "bad"}]
    assert read(tmp_path, rows, labels="mood")[0] == [("a", ("good", "odd")), ("b", ("bad",))]
    with pytest.raises(DataError, match=r"x.jsonl:1: column 'mood' has 2 labels: good, odd") as error:
        read(tmp_path, rows, label="mood")
    assert "orrery finetune multi-label" in error.value.hint


def test_prodigys_answers_count_or_are_the_label(tmp_path):
    rows = [{"text": str(n), "label": "SPORT", "answer": ("accept", "reject")[n % 2]} for n in range(4)]
    found, _ = read(tmp_path, rows, label="answer")
    assert [label for _, label in found] == ["accept", "reject"] * 2
    rows[2]["label"] = "NEWS"
    found, said = read(tmp_path, rows)
    assert found == [("0", "SPORT"), ("2", "NEWS")]
    assert "2 rows left out: their answer is not accept" in said
