"""`orrery data clean` on tables: every column stays, and rows that say different things are no duplicates."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from orrery.cli import program

TEXT = "the quick brown fox jumps over the lazy dog and runs away from all of them"
APART: dict[str, tuple[Any, Any]] = {
    "label": ("a", "b"), "category": (1, 2), "labels": (["x"], ["x", "y"]), "sentiment": (True, False),
    "tags": (["O"], ["B"]), "score": (0.5, 0.25), "answers": ({"text": ["a"]}, {"text": ["b"]}),
    "choices": (["a", "b"], ["a", "c"]), "messages": ([{"role": "user"}], []), "summary": ("short", "shorter"),
    "target": ("eins", "zwei"), "text_pair": ("this", "that"), "chosen": ("yes", "no"), "intent": ("\u00e4", "a"),
    "class": (None, "a"),
}  # fmt: skip
ALIKE: dict[str, tuple[Any, Any]] = {
    "id": (1, 2), "url": ("http://a", "http://b"), "timestamp": (1.5, 2.5), "source": ("web", "books"),
    "language": ("en", "de"), "meta": ({"a": 1}, {"a": 2}), "split": ("train", "test"), "file": ("a", "b"),
    "title": ("A", "B"), "date": ("2020", "2021"), "uuid": ("x", "y"), "n": (None, 1),
}  # fmt: skip


def cleaned(tmp_path: Path, rows: list[dict[str, Any]], *words: str) -> list[dict[str, Any]]:
    source, out = tmp_path / "rows.jsonl", tmp_path / "out.jsonl"
    source.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    assert program.run(["data", "clean", str(source), "-o", str(out), "--overwrite", *words]) == 0
    return [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("rule", [["--exact"], ["--near", "0.8"]])
@pytest.mark.parametrize("name", APART)
def test_rows_that_say_different_things_are_no_duplicates(tmp_path: Path, name: str, rule: list[str]) -> None:
    first, second = ({"text": TEXT, name: value} for value in APART[name])
    rows = cleaned(tmp_path, [first, second, first, second], *rule)
    assert [row[name] for row in rows] == [first[name], second[name]]


@pytest.mark.parametrize("rule", [["--exact"], ["--near", "0.8"]])
@pytest.mark.parametrize("name", ALIKE)
def test_rows_from_different_places_are(tmp_path: Path, name: str, rule: list[str]) -> None:
    first, second = ({"text": TEXT, name: value} for value in ALIKE[name])
    assert cleaned(tmp_path, [first, second], *rule) == [{"name": "rows.jsonl:1", **first}]


def test_other_columns_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"text": TEXT, "verdict": "a"}, {"text": TEXT, "verdict": "b"}]
    assert len(cleaned(tmp_path, rows, "--exact", "--apart", "verdict")) == 2
    assert "duplicates are alike in verdict too" in capsys.readouterr().out
    out = str(tmp_path / "x")
    assert program.run(["data", "clean", str(tmp_path / "rows.jsonl"), "-o", out, "--exact", "--apart", "wrong"]) == 3
    assert "no column 'wrong'" in capsys.readouterr().err


def test_every_column_is_kept_as_it_is(tmp_path: Path) -> None:
    row = {
        "id": 7,
        "review": TEXT,
        "label": "\u00e4\n\u65e5",
        "none": None,
        "list": [1, [2]],
        "deep": {"a": {"b": True}},
    }
    assert cleaned(tmp_path, [row, row], "--exact", "--column", "review") == [{"name": "rows.jsonl:1", **row}]
    named = {"name": "mine", "text": TEXT, "label": "x"}
    assert cleaned(tmp_path, [named], "--exact") == [named]


def test_tables_and_parquet_keep_theirs(tmp_path: Path) -> None:
    table, out = tmp_path / "t.csv", tmp_path / "out.jsonl"
    with open(table, "w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows([["id", "text", "label"], [1, TEXT, "a"], [2, TEXT, "a"], [3, TEXT, "b"]])
    assert program.run(["data", "clean", str(table), "-o", str(out), "--exact"]) == 0
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert [(row["id"], row["label"]) for row in rows] == [("1", "a"), ("3", "b")]
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = {"text": [TEXT, TEXT], "label": [0.5, float("nan")], "raw": [b"a", b"b"]}
    parquet.write_table(arrow.table(columns), tmp_path / "t.parquet")
    assert program.run(["data", "clean", str(tmp_path / "t.parquet"), "-o", str(out), "--exact", "--overwrite"]) == 0
    assert [json.loads(line)["label"] for line in out.read_text().splitlines()] == [0.5, None]


def test_a_table_without_a_line_of_names_has_numbers(tmp_path: Path) -> None:
    table, out = tmp_path / "t.csv", tmp_path / "out.jsonl"
    table.write_text(f"{TEXT},a\n{TEXT},b\n")
    assert program.run(["data", "clean", str(table), "-o", str(out), "--exact", "--column", "1"]) == 0
    first = {"name": "t.csv:1", "text": TEXT, "2": "a"}
    assert [json.loads(line) for line in out.read_text().splitlines()] == [first]
    words = ["--exact", "--column", "1", "--apart", "2", "--overwrite"]
    assert program.run(["data", "clean", str(table), "-o", str(out), *words]) == 0
    assert [json.loads(line)["2"] for line in out.read_text().splitlines()] == ["a", "b"]
