"""Shards say what stands on both sides of their split, as text in memory does."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from orrery.cli.program import run
from orrery.data.cleaning import shared_text
from orrery.data.cleaning.leaks import notes_on_documents
from orrery.data.cleaning.shared_text import notes_on_shards
from orrery.data.records import Document
from orrery.data.shards import large_text, prepare
from orrery.data.shards.encoding import Assigned
from orrery.data.shards.index import Index
from orrery.data.shards.large_text import TextBlock
from orrery.data.sources.shards import ShardSettings, ShardSource
from orrery.data.splits import held_back, split_tail
from orrery.text.train import train_tokenizer

LINE = "the cat number {} sat on the mat and looked at the dog"
TOKENIZER = train_tokenizer("byte_bpe", [LINE], 300)


def lines(first: int, last: int) -> str:
    return "\n".join(LINE.format(n) for n in range(first, last)) + "\n"


# Texts to train on and to hold back.
CASES: dict[str, tuple[list[str], list[str]]] = {
    "nothing": ([lines(0, 30)], [lines(30, 60)]),
    "a document": ([lines(0, 30), "a"], ["b", lines(0, 30)]),
    "short ones": (["yes", "no", "yes"], ["no", "maybe"]),
    "all": (["one", "two"], ["one", "two"]),
    "the beginning": ([lines(0, 100)], [lines(0, 20)]),
    "one in a hundred": ([lines(0, 100)], [lines(99, 199)]),
    "fewer": ([lines(0, 100)], [lines(99, 300)]),
    "indented": ([lines(0, 10).replace("the cat", "    the cat")], [lines(0, 10)]),
    "ends of Windows": ([lines(0, 10).replace("\n", "\r\n")], [lines(0, 10)]),
    "empty": (["", "a"], ["", "b"]),
    "no line end": ([lines(0, 10)], [lines(0, 10).strip()]),
    "letters of four bytes": (["\U0001f642" * 90], ["\U0001f642" * 90 + "\n"]),
    "across blocks": (["x" * 300 + "\n" + lines(0, 3)], [lines(5, 6) + "x" * 300]),
}


def assigned(train: list[str], validation: list[str], size: int) -> Iterator[Assigned]:
    """Yield documents of both sides in turn, in blocks of at most so many characters."""
    for side, texts in (("train", train), ("validation", validation)):
        for number, text in enumerate(texts):
            cuts = range(0, max(len(text), 1), size)
            for start in cuts:
                block = TextBlock(f"{side} {number}", text[start : start + size], start == cuts[-1])
                yield ("train" if side == "train" else "validation"), block


@pytest.mark.parametrize("size", [1, 7, 64, 10_000])
@pytest.mark.parametrize("name", CASES)
def test_what_is_said_is_what_is_said_of_texts_in_memory(name: str, size: int) -> None:
    train, validation = CASES[name]
    shared = shared_text.shared_text(assigned(train, validation, size), assigned(train, validation, size))
    said = notes_on_shards(shared, "")
    expected = notes_on_documents(
        [Document(str(n), text) for n, text in enumerate(train)],
        [Document(str(n), text) for n, text in enumerate(validation) if text],
    )
    assert [note.rpartition(";")[0] or note for note in said] == [note.rpartition(";")[0] or note for note in expected]


@pytest.mark.parametrize(("overlap", "wanted"), [(0, 0.0), (500, 0.25), (2000, 1.0)])
def test_of_very_many_a_sample_is_compared(monkeypatch: pytest.MonkeyPatch, overlap: int, wanted: float) -> None:
    monkeypatch.setattr(shared_text, "MOST", 500)
    texts = [LINE.format(number) for number in range(2000)]
    train = [LINE.format(number) for number in range(2000 - overlap, 4000)]
    shared = shared_text.shared_text(assigned(train, texts, 99), assigned(train, texts, 99))
    assert 250 < shared.of_documents <= 500
    assert shared.documents / shared.of_documents == pytest.approx(wanted, abs=0.08)
    assert shared.lines / shared.of_lines == pytest.approx(wanted, abs=0.08)


def test_shards_tell_their_training_what_was_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts = [LINE.format(number % 30) for number in range(60)]
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    folder, tokenizer = tmp_path / "shards", tmp_path / "tokenizer"
    TOKENIZER.save(tokenizer)
    words = ["data", "prepare", str(file), "--tokenizer", str(tokenizer), "-o", str(folder), "--every", "5"]
    assert run(words) == 0
    said = capsys.readouterr().err
    assert "documents held back stand in training too, word for word" in said
    notes = ShardSource.read(ShardSettings(shards=folder)).remarks()
    assert len(notes) == 2
    assert all(note in said for note in notes)
    sides = [held_back(f"rows.jsonl:{n}", 5) for n in range(1, 61)]
    both = {text for text, held in zip(texts, sides, strict=True) if held}
    both &= {text for text, held in zip(texts, sides, strict=True) if not held}
    assert notes[0].startswith(f"leak: {len(both)} of ")

    whole = (folder / "index.json").read_bytes()
    older = json.loads(whole)
    del older["shared"]
    (folder / "index.json").write_text(json.dumps(older))
    (note,) = ShardSource.read(ShardSettings(shards=folder)).remarks()
    assert "not recorded" in note
    assert run(words) == 0  # as the note says
    assert (folder / "index.json").read_bytes() == whole


def test_a_tail_that_repeats_what_stands_before_it_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large_text, "BLOCK", 64)
    text = lines(0, 30) * 2
    (tmp_path / "a.txt").write_text(text)
    prepare.prepare(tmp_path / "a.txt", TOKENIZER, tmp_path / "out")
    index = Index.read(tmp_path / "out")
    assert index is not None
    train, tail = ([Document("a", part)] for part in split_tail(text))
    assert notes_on_shards(index.shared, "") == notes_on_documents(train, tail) != []
