"""Answers of multiple choice: what a key means, one that means two things, and choices that are equal."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from orrery.errors import DataError
from orrery.evaluation.benchmarks.choices import read_questions

MEANT: dict[str, tuple[list[str], Any, str]] = {
    "a letter": (["red", "blue"], "B", "blue"),
    "a letter with blanks": (["red", "blue"], " B ", "blue"),
    "a place": (["red", "blue"], 1, "blue"),
    "a place as text": (["red", "blue"], "1", "blue"),
    "the choice": (["red", "blue"], "blue", "blue"),
    "the choice with blanks": (["red", "blue"], " blue", "blue"),
    "a letter that is its own choice": (["A", "B"], "B", "B"),
    "a place that is its own choice": (["0", "1"], "1", "1"),
    "a place among numbers": (["1", "2", "3"], 1, "2"),
    "a letter among letters": (["O", "A", "AB"], 2, "AB"),
    "a place of equal choices": (["one", "one", "two"], 2, "two"),
    "the second of equal choices": (["one", "one", "two"], 1, "one"),
    "an equal choice by its text": (["one", "two", "one"], "one", "one"),
    "an equal choice by its letter": (["two", "one", "one"], "C", "one"),
    "two meanings of equal choices": (["A", "x", "A"], "A", "A"),
}
DOUBTFUL: dict[str, tuple[list[str], Any, str]] = {
    "a blood group": (["O", "A", "B", "AB"], "A", r"'A' \(the choice\) or 'O' \(the letter\)"),
    "wheels": (["1", "2", "3", "4"], "1", r"'1' \(the choice\) or '2' \(the place\)"),
    "letters turned": (["B", "A"], "A", r"'A' \(the choice\) or 'B' \(the letter\)"),
    "digits turned": (["1", "0"], "0", r"'0' \(the choice\) or '1' \(the place\)"),
    "grades": (["D", "C", "B", "A"], "C", r"'C' \(the choice\) or 'B' \(the letter\)"),
    "notes": (["C", "D", "E", "F"], "D", r"'D' \(the choice\) or 'F' \(the letter\)"),
    "vitamins": (["K", "C", "B", "D"], "B", r"'B' \(the choice\) or 'C' \(the letter\)"),
    "sums": (["4", "3", "2", "5"], "3", r"'3' \(the choice\) or '5' \(the place\)"),
    "with blanks": (["O", "A"], " A ", r"'A' \(the choice\) or 'O' \(the letter\)"),
    "counting from 1": (["2", "1", "0"], "2", r"'2' \(the choice\) or '0' \(the place\)"),
    "equal choices beside": (["O", "O", "A"], "A", r"'A' \(the choice\) or 'O' \(the letter\)"),
}
NOTHING: list[Any] = ["C", 2, -1, True, None, "", "2", "\u00b2", 1.5, ["a"], "9" * 5000, "b "]


def rows(path: Path, *wanted: tuple[list[str], Any]) -> str:
    lines = ({"question": "q", "choices": choices, "answer": answer} for choices, answer in wanted)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("name", MEANT)
def test_a_key_is_read_as_what_it_means(tmp_path: Path, name: str) -> None:
    choices, answer, wanted = MEANT[name]
    (question,) = read_questions(rows(tmp_path / "q.jsonl", (choices, answer)))
    assert question.choices[question.answer] == wanted
    assert sorted(question.choices) == sorted(set(choices))
    assert question.item == f"q {wanted}"


@pytest.mark.parametrize("name", DOUBTFUL)
def test_a_key_that_means_two_choices_is_refused_by_its_row_and_the_hint_works(tmp_path: Path, name: str) -> None:
    choices, answer, told = DOUBTFUL[name]
    with pytest.raises(DataError, match=rf"q\.jsonl:2: the answer .* may mean {told}") as refused:
        read_questions(rows(tmp_path / "q.jsonl", (["a", "b"], 0), (choices, answer)))
    for place in map(int, re.findall(r"(\d+) for ", refused.value.hint)):
        (question,) = read_questions(rows(tmp_path / "q.jsonl", (choices, place)))
        assert question.choices[question.answer] == choices[place]


@pytest.mark.parametrize("answer", NOTHING)
def test_a_key_that_means_nothing_is_refused(tmp_path: Path, answer: Any) -> None:
    with pytest.raises(DataError, match="is none of 2 choices"):
        read_questions(rows(tmp_path / "q.jsonl", (["x", "y"], answer)))


def test_choices_that_are_all_equal_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"q\.jsonl:1: all choices are equal"):
        read_questions(rows(tmp_path / "q.jsonl", (["x", "x", "x"], 0)))
