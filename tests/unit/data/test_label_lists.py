"""Several labels of a row: names, or a 0 or 1 for each label, in every form in which tables have them."""

import json
from pathlib import Path
from typing import Any

import pytest

from orrery.data.sources.labelled import LabelledSettings, LabelledSource
from orrery.errors import DataError

HOT: dict[str, list[Any]] = {
    "0 and 1": [[0, 1, 0], [1, 0, 0], [0, 0, 1], [1, 1, 0], [0, 0, 0]],
    "true and false": [[False, True, False], [True, False, False], [False, False, True], [True, True, False],
                       [False] * 3],
    "a text": ["0,1,0", "1,0,0", "0,0,1", "1,1,0", "0,0,0"],
    "a text with blanks": ["0, 1, 0", "1, 0, 0", "0, 0, 1", "1, 1, 0", "0, 0, 0"],
    "JSON in a text": ["[0, 1, 0]", "[1, 0, 0]", "[0, 0, 1]", "[1, 1, 0]", "[0, 0, 0]"],
    "words in a text": ["False,True,False", "true,false,false", "FALSE,false,true", "True,True,False", "false,false,0"],
    "Python in a text": ["[False, True, False]", "[True, False, False]", "[False, False, True]", "[True, True, False]",
                         "[False, False, False]"],
    "an array in a text": ["[0 1 0]", "[1 0 0]", "[0 0 1]", "[1 1 0]", "[0 0 0]"],
    "decimals": [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [1.0, 1.0, 0.0], [0.0, 0.0, 0.0]],
    "texts in a list": [["0", "1", "0"], ["1", "0", "0"], ["0", "0", "1"], ["1", "1", "0"], ["0", "0", "0"]],
}  # fmt: skip
WANTED = [("1",), ("0",), ("2",), ("0", "1"), ()]
NAMED: dict[str, tuple[list[Any], list[tuple[str, ...]]]] = {
    "numbers": ([[2, 5], [0], [0, 1], []], [("2", "5"), ("0",), ("0", "1"), ()]),
    "a few numbers": ([[0], [1], [0, 1], []], [("0",), ("1",), ("0", "1"), ()]),
    "one number each": ([[0], [1], [0], [1]], [("0",), ("1",), ("0",), ("1",)]),
    "names": (["food, room", "bar", "", "food"], [("food", "room"), ("bar",), (), ("food",)]),
    "Python's names": (["['food', 'room']", "['bar']", "[]", "['food']"], [("food", "room"), ("bar",), (), ("food",)]),
    "an array of names": (["['food' 'big room']", "['bar']"], [("food", "big room"), ("bar",)]),
    "names with a bar": (["food|room", "bar", "car|bus"], [("food|room",), ("bar",), ("car|bus",)]),
    "yes and no among others": (["true,false", "maybe", "true", ""], [("true", "false"), ("maybe",), ("true",), ()]),
}
REFUSED: dict[str, tuple[list[Any], str]] = {
    "one fewer": ([[0, 1, 0], [0, 1], [1, 0, 0]], "rows.jsonl:2: 2 values of 0 and 1, and 3 at"),
    "one more in a text": (["0,1,0", "1,0,0", "0,0,0,1"], "rows.jsonl:3: 4 values of 0 and 1, and 3 at"),
    "truth and names": ([[True, False], ["food"], [False, True]], "rows.jsonl:2: .*true or false for each label at"),
    "truth of another length": ([[True, False], [True], [False, True]], "rows.jsonl:2: 1 values of 0 and 1, and 2 at"),
    "blanks between": (["0 1 0", "1 0 0", "0 0 1"], "'0 1 0' looks like a 0 or 1 for each label"),
    "semicolons between": (["0;1", "1;0", "1;1"], "'0;1' looks like a 0 or 1 for each label"),
    "names with bars between": (["food|room", "food", "bar"], r"rows.jsonl:1: 'food\|room' looks like several labels"),
    "names with semicolons between": (["food", "room; food"], "rows.jsonl:2: 'room;food' looks like several labels"),
    "a number alone": ([3.5, [1, 0]], "rows.jsonl:1: column 'labels' holds no list of labels"),
    "numbers between": ([[0.5, 0.5], [1, 0]], "rows.jsonl:1: column 'labels' holds no list of labels"),
    "lists in lists": ([[[0, 1]], [[1, 0]]], "rows.jsonl:1: column 'labels' holds no list of labels"),
    "nothing": ([None, [1, 0]], "rows.jsonl:1: column 'labels' holds no list of labels"),
}


def read(tmp_path: Path, values: list[Any]) -> LabelledSource:
    path = tmp_path / "rows.jsonl"
    rows = ({"text": f"note {n}", "labels": value} for n, value in enumerate(values))
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return LabelledSource.read(LabelledSettings(train=str(path), labels="labels"))


@pytest.mark.parametrize("form", HOT)
def test_a_0_or_1_for_each_label_is_read_by_its_place(tmp_path: Path, form: str) -> None:
    assert [row.target for row in read(tmp_path, HOT[form]).train] == WANTED


@pytest.mark.parametrize("form", NAMED)
def test_names_stay_names(tmp_path: Path, form: str) -> None:
    values, wanted = NAMED[form]
    assert [row.target for row in read(tmp_path, values).train] == wanted


@pytest.mark.parametrize("form", REFUSED)
def test_what_can_be_neither_is_refused_by_its_row(tmp_path: Path, form: str) -> None:
    values, told = REFUSED[form]
    with pytest.raises(DataError, match=told):
        read(tmp_path, values)


def test_places_get_names_and_the_hint_for_other_separators_works(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("text,labels\na,0 1\nb,1 0\nc,1 1\n")
    names = {"0": "food", "1": "room"}
    barred = tmp_path / "barred.csv"
    barred.write_text("text,labels\na,x|y\nb,x\nc,y\n")
    source = LabelledSource.read(LabelledSettings(train=str(barred), labels="labels", separator="|"))
    assert [row.target for row in source.train] == [("x", "y"), ("x",), ("y",)]
    source = LabelledSource.read(LabelledSettings(train=str(path), labels="labels", separator=" ", names=names))
    assert [row.target for row in source.train] == [("room",), ("food",), ("food", "room")]


def test_a_column_for_each_label(tmp_path: Path) -> None:
    path = tmp_path / "jigsaw.csv"
    path.write_text('id,comment_text,toxic,threat\n7,"you, there",1,0\n8,hello,0,0\n9,both,1,1\n')
    for named in ("toxic,threat", ["toxic", "threat"]):
        settings = LabelledSettings.model_validate({"train": str(path), "labels": named})
        assert [row.target for row in LabelledSource.read(settings).train] == [("toxic",), (), ("toxic", "threat")]
    with pytest.raises(DataError, match="no column 'labels' among") as error:
        LabelledSource.read(LabelledSettings(train=str(path), labels="labels"))
    assert error.value.hint.endswith("--data.labels toxic,threat")
    path.write_text("text,toxic,threat\na,1,0\nb,0,-1\n")
    with pytest.raises(DataError, match=r"jigsaw.csv:3: the label 'threat' has '-1', and neither 0 nor 1"):
        LabelledSource.read(LabelledSettings(train=str(path), labels="toxic,threat"))
