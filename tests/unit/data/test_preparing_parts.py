"""A preparation in parts ends with the bytes of one that was never parted."""

import io
import itertools
import json
import os
import shutil

import pytest
import sentencepiece

from orrery.data.shards import encoding, large_text, prepare
from orrery.data.shards.index import Index, ShardSet, finished
from orrery.data.shards.parts import parse_part, part_folder
from orrery.errors import DataError, UsageError
from orrery.text import Tokenizer
from orrery.text.sentencepiece.export import definition
from orrery.text.train import train_tokenizer

LINE = "The quick brown fox, number {}, jumps over the lazy dog's tail.\n"
LINES = [LINE.format(number * 37 % 101) for number in range(120)]
TEXT = "".join(LINES)


class Killed(BaseException):
    """Stands for a kill: nothing of the program catches it."""


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(large_text, "BLOCK", 64)
    monkeypatch.setattr(encoding, "TOGETHER", 128)
    monkeypatch.setattr(prepare, "COMMIT_SECONDS", 0.0)
    monkeypatch.setattr(os, "fsync", lambda handle: None)


@pytest.fixture(scope="module")
def whole_reader():
    """A SentencePiece model, whose ids depend on all of a document before them."""
    made = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(LINES),
        model_writer=made,
        vocab_size=90,
        model_type="unigram",
        hard_vocab_limit=False,
        normalization_rule_name="identity",
        minloglevel=3,
    )
    return Tokenizer(definition(made.getvalue()), {"end": "</s>"})


@pytest.fixture(scope="module")
def byte_reader():
    return train_tokenizer("byte_bpe", [TEXT], 400)


def source(kind, folder):
    if kind == "text":
        (folder / "a.txt").write_text(TEXT)
        return folder / "a.txt"
    if kind == "rows":
        texts = [*LINES[:60], "", "x" * 500, "".join(LINES[60:90]), *LINES[90:]]
        (folder / "a.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
        return folder / "a.jsonl"
    (folder / "texts").mkdir()
    for number in range(9):
        (folder / "texts" / f"{number}.txt").write_text("".join(LINES[number * 9 : number * 11 + 3]))
    return folder / "texts"


def make(source, tokenizer, folder, part=None):
    return prepare.prepare(source, tokenizer, folder, every=3, shard_tokens=50, part=part)


def content(folder):
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.name != "lock"}


CASES = [("byte_reader", "text", 5), ("byte_reader", "rows", 300), ("byte_reader", "folder", 2)]
CASES += [
    ("whole_reader", "text", 3),
    ("whole_reader", "rows", 4),
    ("whole_reader", "folder", 5),
    ("byte_reader", "rows", 1),
]


@pytest.mark.parametrize(("reader", "kind", "of"), CASES)
def test_the_parts_join_to_the_bytes_of_one_run(reader, kind, of, request, tmp_path):
    tokenizer, given = request.getfixturevalue(reader), source(kind, tmp_path)
    make(given, tokenizer, tmp_path / "whole")
    for number in sorted(range(1, of + 1), key=lambda number: number * 7 % 11):
        make(given, tokenizer, tmp_path / "out", (number, of))
    make(given, tokenizer, tmp_path / "out")
    assert content(tmp_path / "out") == content(tmp_path / "whole")
    make(given, tokenizer, tmp_path / "out")
    assert content(tmp_path / "out") == content(tmp_path / "whole")


@pytest.mark.parametrize("reader", ["byte_reader", "whole_reader"])
def test_killed_anywhere_a_part_and_the_joining_go_on(reader, request, tmp_path, monkeypatch):
    tokenizer, given = request.getfixturevalue(reader), source("rows", tmp_path)
    make(given, tokenizer, tmp_path / "whole")
    write, calls = Index.write, itertools.count()

    def dying(self, folder):
        if next(calls) % 3 == 2:
            raise Killed
        write(self, folder)

    monkeypatch.setattr(Index, "write", dying)
    kills = 0
    for part in ((1, 4), (2, 4), (3, 4), (4, 4), None):
        for _ in range(400):
            try:
                make(given, tokenizer, tmp_path / "out", part)
            except Killed:
                kills += 1
            else:
                break
    assert kills > 20
    assert content(tmp_path / "out") == content(tmp_path / "whole")


def test_a_missing_or_unfinished_part_is_named_with_its_command(byte_reader, tmp_path):
    given = source("rows", tmp_path)
    for number in (1, 3):
        make(given, byte_reader, tmp_path / "out", (number, 4))
    with pytest.raises(DataError, match="of 4 parts 2, 4 are not there") as refused:
        make(given, byte_reader, tmp_path / "out")
    assert "--part 2/4" in refused.value.hint
    for number in (2, 4):
        make(given, byte_reader, tmp_path / "out", (number, 4))
    last = part_folder(tmp_path / "out", (4, 4))
    index = Index.read(last)
    index.model_copy(update={"complete": False}).write(last)
    with pytest.raises(DataError, match="of 4 parts 4 is not there"):
        make(given, byte_reader, tmp_path / "out")


def test_parts_of_two_partings_or_of_another_source_do_not_join(byte_reader, tmp_path):
    given = source("rows", tmp_path)
    for part in ((1, 2), (2, 2), (1, 3)):
        make(given, byte_reader, tmp_path / "out", part)
    with pytest.raises(DataError, match="parts of 2 and of 3"):
        make(given, byte_reader, tmp_path / "out")
    shutil.rmtree(part_folder(tmp_path / "out", (1, 3)))
    given.write_text(given.read_text().replace("number 37,", "number 38,"))
    shutil.rmtree(part_folder(tmp_path / "out", (2, 2)))
    make(given, byte_reader, tmp_path / "out", (2, 2))
    with pytest.raises(DataError, match="does not go on where"):
        make(given, byte_reader, tmp_path / "out")


def test_parts_that_are_all_of_an_older_source_are_refused(byte_reader, tmp_path):
    given = source("rows", tmp_path)
    for part in ((1, 2), (2, 2)):
        make(given, byte_reader, tmp_path / "out", part)
    given.write_text(given.read_text().replace("number 37,", "number 38,"))
    with pytest.raises(DataError, match="not what it was"):
        make(given, byte_reader, tmp_path / "out")


def test_an_id_of_a_part_that_changed_on_its_way_is_found(byte_reader, tmp_path):
    given = source("rows", tmp_path)
    for part in ((1, 2), (2, 2)):
        make(given, byte_reader, tmp_path / "out", part)
    shard = part_folder(tmp_path / "out", (2, 2)) / "train-00000.tokens"
    content = bytearray(shard.read_bytes())
    content[-2] ^= 1
    shard.write_bytes(content)
    with pytest.raises(DataError, match="its ids changed since they were written"):
        make(given, byte_reader, tmp_path / "out")


def test_a_part_is_no_data_and_files_of_others_stay(byte_reader, tmp_path):
    given = source("rows", tmp_path)
    make(given, byte_reader, tmp_path / "out", (1, 1))
    part = part_folder(tmp_path / "out", (1, 1))
    with pytest.raises(DataError, match="a part of a preparation"):
        ShardSet.open(part)
    (part / "notes.txt").write_text("mine")
    make(given, byte_reader, tmp_path / "out")
    assert (part / "notes.txt").read_text() == "mine"
    assert finished(tmp_path / "out").part is None


@pytest.mark.parametrize("text", ["", "3", "0/8", "9/8", "1/0", "a/b", "1/8/2", "-1/8", "1 / 8"])
def test_a_part_that_is_none_is_refused(text):
    with pytest.raises(UsageError, match="--part is"):
        parse_part(text)
