"""Rows without a text are passed over and told, and names of files in the place of texts are told too."""

import json
from pathlib import Path
from typing import Any

import pytest

from orrery.cli.texts import READING, InputText, TextReading, read, run
from orrery.errors import DataError

CSV = "text,label\n{}\n"
EMPTY = {
    "csv, empty": ("rows.csv", "text,label\none,a\n,b\ntwo,c\n"),
    "csv, blanks": ("rows.csv", "text,label\none,a\n   ,b\ntwo,c\n"),
    "csv, quoted": ("rows.csv", 'text,label\none,a\n"",b\ntwo,c\n'),
    "csv, a line end alone": ("rows.csv", 'text,label\none,a\n"\n",b\ntwo,c\n'),
    "csv, a blank of no width": ("rows.csv", "text,label\none,a\n\u00a0\u2003,b\ntwo,c\n"),
    "tsv": ("rows.tsv", "text\tlabel\none\ta\n\tb\ntwo\tc\n"),
    "jsonl, empty": ("rows.jsonl", '{"text": "one"}\n{"text": ""}\n{"text": "two"}\n'),
    "jsonl, null": ("rows.jsonl", '{"text": "one"}\n{"text": null}\n{"text": "two"}\n'),
    "jsonl, tab": ("rows.jsonl", '{"text": "one"}\n{"text": "\\t\\n"}\n{"text": "two"}\n'),
    "lines": ("rows.txt", "one\n\ntwo\n"),
    "lines of Windows": ("rows.txt", "one\r\n \r\ntwo\r\n"),
}


@pytest.mark.parametrize("name", EMPTY)
def test_the_other_rows_are_answered(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    file, content = EMPTY[name]
    path = tmp_path / file
    path.write_text(content, encoding="utf-8", newline="")
    given = read((), TextReading(file=path))
    assert [one.blank for one in given] == [False, True, False]
    asked: list[Any] = []

    def answer(items: list[Any], names: list[str]) -> list[str]:
        asked.extend(zip(items, names, strict=True))
        return [item.upper() for item in items]

    assert run(answer, given, [one.fields["text"] for one in given]) == ["ONE", None, "TWO"]
    assert [text for text, _ in asked] == ["one", "two"]
    assert "without a text, and passed over: 1 of 3 rows (line " in capsys.readouterr().err


def test_a_file_of_nothing_but_empty_rows_asks_for_nothing(tmp_path: Path) -> None:
    path = tmp_path / "rows.txt"
    path.write_text("\n\n")
    given = read((), TextReading(file=path))
    assert run(lambda items, names: pytest.fail("asked"), given, ["", ""]) == [None, None]


def test_what_is_no_text_is_still_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({"text": 5}) + "\n")
    with pytest.raises(DataError, match=r"rows\.jsonl:1: text is '5', no text"):
        read((), TextReading(file=path))


def test_an_empty_second_text_passes_the_row_over(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("text,pair\na,b\na,\n,b\n")
    assert [one.blank for one in read((), TextReading(file=path), ("text", "pair"))] == [False, True, True]


@pytest.mark.parametrize(
    "name", ["new.txt", "new.csv", "rows.jsonl", "a.tsv", "UP.TXT", "x.json", "x.parquet", "notes"]
)
def test_a_text_that_is_the_name_of_a_file_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_text("one\n")
    assert read((name,), READING) == [InputText("text 1", {"text": name})]
    assert f"{name!r} is the name of a file" in (told := capsys.readouterr().err)
    assert f"--file {name} reads the file" in told
    (tmp_path / name).unlink()
    read((name,), READING)
    assert ("looks like the name of a file" in capsys.readouterr().err) == (name != "notes")


@pytest.mark.parametrize("text", ["good film", "see a.txt", "end.", "", "x" * 5000, "a\0b", "...", "/", "v1.2", "e.g."])
def test_other_texts_are_not(capsys: pytest.CaptureFixture[str], text: str) -> None:
    read((text,), READING)
    assert capsys.readouterr().err == ""
