"""What is said of documents and long lines that are trained on and held back."""

from pathlib import Path
from typing import Any

import pytest

from orrery.data.cleaning.leaks import shared_lines
from orrery.data.records import Document
from orrery.data.sources.text import TextSettings, TextSource

LINE = "the cat number {} sat on the mat and looked at the dog"


def lines(first: int, last: int) -> str:
    return "\n".join(LINE.format(n) for n in range(first, last)) + "\n"


CASES: dict[str, tuple[str, str, list[str]]] = {
    "nothing": (lines(0, 100), lines(100, 120), []),
    "the same": (lines(0, 20), lines(0, 20), ["leak: 1 of 1 documents held back stand", "leak: 20 of the 20"]),
    "the beginning": (lines(0, 100), lines(0, 20), ["leak: 20 of the 20 different lines"]),
    "the file twice": (lines(0, 50) + lines(40, 60), lines(50, 60) * 3, ["leak: 10 of the 10 different lines"]),
    "one in a hundred": (lines(0, 100), lines(99, 199), ["leak: 1 of the 100"]),
    "fewer": (lines(0, 100), lines(99, 300), []),
    "indented": (lines(0, 10).replace("the cat", "    the cat"), lines(0, 10), ["leak: 10 of the 10"]),
    "ends of Windows": (lines(0, 10).replace("\n", "\r\n"), lines(0, 10), ["leak: 10 of the 10"]),
    "short lines": ("yes\nno\n" * 50, "yes\nno\n" * 5, []),
    "an empty text": (lines(0, 10), "\n", []),
    "no line end": (lines(0, 10), lines(0, 10).strip(), ["leak: 10 of the 10"]),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_what_is_trained_on_too_is_told(tmp_path: Path, name: str) -> None:
    train, val, wanted = CASES[name]
    (tmp_path / "a.txt").write_bytes(train.encode())
    (tmp_path / "b.txt").write_bytes(val.encode())
    source = TextSource.read(TextSettings(train=str(tmp_path / "a.txt"), val=str(tmp_path / "b.txt")))
    notes = source.remarks()
    assert len(notes) == len(wanted)
    assert all(note.startswith(begun) for note, begun in zip(notes, wanted, strict=True))


def test_a_tail_that_repeats_what_stands_before_it_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(lines(0, 30) * 2)
    split: Any = {"tail": 0.5}
    source = TextSource.read(TextSettings(train=str(tmp_path / "a.txt"), split=split))
    assert source.remarks()[-1].startswith("leak: 30 of the 30")
    assert TextSource.read(TextSettings(train=str(tmp_path / "a.txt"))).remarks() == ()
    assert shared_lines([Document("a", lines(0, 9))], []) == (0, 0)
