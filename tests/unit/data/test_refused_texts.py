"""Texts, rows and mixtures that are refused: which one, what is wrong with it, and what to do."""

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orrery.data.batches.mixtures import Component, MixtureBatches, normalised
from orrery.data.batches.padded_rows import PaddedRows, SequentialRows
from orrery.data.batches.pairs import Ends, SequentialPairs
from orrery.data.batches.preferences import PreferenceBatches, paired
from orrery.data.batches.token_windows import CropBatches, PaddedBatches, SequentialWindows
from orrery.data.batches.windows import windows
from orrery.data.cleaning.filters import Matching, parse_rules
from orrery.data.cleaning.near_duplicates import bands_for
from orrery.data.corpora import read_corpus, read_pairs, read_placed_rows, read_sentences
from orrery.data.formats import format_of
from orrery.errors import DataError, OrreryError, UsageError

MEND, WHOLE = "mend it, or allow a number of bad ones with `skip_bad=N`", "check that the file was written whole"


def ids(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.uint32)


def crops() -> CropBatches:
    return CropBatches(ids(1, 2, 3), 1, 0, 2)


def mixture(*names: str) -> MixtureBatches:
    return MixtureBatches([Component(name, crops(), 1.0) for name in names], 1, 0)


REFUSED: dict[str, tuple[Callable[[], Any], type[OrreryError], str, str]] = {
    "the state of another source": (
        lambda: crops().restore({"rollouts": 1}), UsageError,
        "CropBatches has no state, got rollouts", "resume the same run"),
    "a document without tokens": (
        lambda: PaddedBatches([ids(1), ids()], 1, 0, 4), DataError,
        "a document has 0 tokens", "leave empty documents out"),
    "no documents": (
        lambda: PaddedBatches([], 1, 0, 4), DataError,
        "the corpus has 0 documents, 1 are needed", "use more text or a shorter context"),
    "too short a text": (
        lambda: SequentialWindows(ids(1), 4, 1), DataError,
        "the corpus has 1 tokens, 2 are needed", "use more text or a shorter context"),
    "a stride beyond the window": (
        lambda: SequentialWindows(ids(1, 2, 3), 2, 1, 3), UsageError,
        "a stride of 3 for windows of 2", "use a stride from 1 to the length"),
    "a stride below 1": (
        lambda: SequentialWindows(ids(1, 2, 3), 2, 1, -1), UsageError,
        "a stride of -1 for windows of 2", "use a stride from 1 to the length"),
    "an overlap of whole windows": (
        lambda: list(windows(10, 4, 4)), UsageError,
        "windows of 4 tokens cannot share 4", "choose a smaller stride"),
    "no pairs": (
        lambda: SequentialPairs([], Ends(0, 1), 1), DataError,
        "there are 0 pairs", "give two files of as many lines"),
    "a pair without a target": (
        lambda: SequentialPairs([((1,), (2,)), ((1,), ())], Ends(0, 1), 1), DataError,
        "pair 1 has an empty target", "leave such pairs out"),
    "a pair without a source": (
        lambda: SequentialPairs([((), (2,))], Ends(0, 1), 1), DataError,
        "pair 0 has an empty source", "leave such pairs out"),
    "no preferences": (
        lambda: PreferenceBatches([], paired, 1, 0, 8), DataError,
        "there are 0 preferences to learn from", "give the recipe's data a file that has some"),
    "no rows": (
        lambda: PaddedRows([], 1, 0), DataError,
        "there are 0 rows to learn from", "give the recipe's data a file that has some"),
    "no rows in order": (
        lambda: SequentialRows([], 1), DataError,
        "there are 0 rows to learn from", "give the recipe's data a file that has some"),
    "a corpus twice": (
        lambda: mixture("a", "b", "a"), UsageError,
        "a mixture names a corpus twice: a, b, a", "give each its own name"),
    "no corpora": (
        lambda: normalised([]), UsageError, "a mixture of no corpora", "name at least one corpus with its weight"),
    "a weight of 0": (
        lambda: normalised([1, 0]), UsageError,
        "a weight of 0 in a mixture", "give each corpus a weight above 0, or leave it out"),
    "a weight without an end": (
        lambda: normalised([1, float("inf")]), UsageError,
        "a weight of inf in a mixture", "give each corpus a weight above 0, or leave it out"),
    "a weight of almost nothing": (
        lambda: normalised([1, 1e-7]), UsageError,
        "a weight of 1e-07 beside others that make 1",
        "give each corpus at least a millionth of the whole, or leave it out"),
    "no similarity": (
        lambda: bands_for(0.0), UsageError,
        "a similarity of 0", "give a Jaccard similarity above 0, at most 1; 0.8 is usual"),
    "more than the same": (
        lambda: bands_for(1.01), UsageError,
        "a similarity of 1.01", "give a Jaccard similarity above 0, at most 1; 0.8 is usual"),
    "no pattern": (
        lambda: Matching("("), UsageError, "'(' is not a regular expression: ", "Python's re describes them"),
    "one bound": (
        lambda: parse_rules("words=3"), UsageError,
        "words=3: not two bounds", "write words=LOW:HIGH, either of which may be left out"),
    "bounds that hold nothing": (
        lambda: parse_rules("words=4:3"), UsageError,
        "words=4:3: not two bounds", "write words=LOW:HIGH, either of which may be left out"),
    "an archive": (
        lambda: format_of(Path("a.zip")), DataError, "a.zip: .zip files are not read", "unpack it: `unzip FILE`"),
    "a compressed Parquet file": (
        lambda: format_of(Path("a.parquet.gz")), DataError,
        "a.parquet.gz: a compressed Parquet file", "decompress it; Parquet compresses its columns itself"),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_read_from_is_refused_with_what_to_do(what: str) -> None:
    ask, kind, message, hint = REFUSED[what]
    with pytest.raises(kind) as refused:
        ask()
    assert type(refused.value) is kind
    assert refused.value.message.startswith(message)
    assert refused.value.hint == hint


def test_what_stands_at_the_bounds_is_read() -> None:
    crops().restore({})
    assert SequentialWindows(ids(1, 2, 3), 2, 1, 2).windows == 1
    assert SequentialWindows(ids(1, 2, 3), 2, 1, 1).windows == 1
    assert len(normalised([1, 2e-6])) == 2
    assert bands_for(1.0).rows >= bands_for(0.01).rows
    assert [rule.low for rule in parse_rules("words=3:3")] == [3.0]
    assert format_of(Path("A.TXT.GZ")) == ".txt"


FILES: dict[str, tuple[str, bytes, str, str]] = {
    "a list with more behind it": (
        "a.json", b'[{"text": "a"}] x', ": more after the list of records", "a file holds one list; or use JSON lines"),
    "a list that breaks off": (
        "a.json", b'[{"text": "a"}', ":2: not JSON: a comma or the closing bracket is missing",
        "nothing behind that place can be read; mend it"),
    "an object with a list": (
        "a.json", b'{"rows": [{"text": "a"}]}', ": one object with the keys rows, not a list of records",
        "write the records in it as JSON lines: `jq -c '.[\"rows\"][]' FILE > NEW.jsonl`"),
    "text that is no JSON": (
        "a.json", b"hello", ": no JSON lines and no list of records",
        "write records as JSON lines: `jq -c . FILE > NEW.jsonl`"),
    "a table without rows": ("a.csv", b"", ": no rows, not even the names of columns", WHOLE),
    "a column twice": ("a.csv", b"text,text\na,b\n", ": two columns 'text'",
        "name each column once; where the first line is values and no names, choose columns by number: 1, 2, ..."),
    "columns without a name": (
        "a.csv", b"text,,\na,b,c\n", ": 2 columns without a name", "name them, or say which columns you want"),
    "a file that breaks off": (
        "a.jsonl.gz", gzip.compress(b'{"text": "a"}\n')[:-4], ": damaged .gz file: ", "fetch or compress it again"),
    "a line that is no row": ("a.jsonl", b'{"text": "a"}\n{\n', ":2: ", MEND),
}  # fmt: skip


@pytest.mark.parametrize("what", FILES)
def test_a_file_that_is_not_what_it_says_is_named_with_the_place(what: str, tmp_path: Path) -> None:
    name, content, message, hint = FILES[what]
    file = tmp_path / name
    file.write_bytes(content)
    with pytest.raises(DataError) as refused:
        list(read_placed_rows(file))
    assert refused.value.message.startswith(f"{file}{message}")
    assert refused.value.hint == hint


def test_parallel_files_that_part_are_named_with_their_lines(tmp_path: Path) -> None:
    ours, theirs = tmp_path / "a.txt", tmp_path / "b.txt"
    for one, other, counts in ((b"a\nb\nc\n", b"a\n", (3, 1)), (b"a\n", b"a\nb\n", (1, 2))):
        ours.write_bytes(one)
        theirs.write_bytes(other)
        with pytest.raises(DataError) as refused:
            list(read_pairs(ours, theirs))
        assert refused.value.message == f"{ours} has {counts[0]} lines, {theirs} has {counts[1]}"
        assert "find where they part" in refused.value.hint
    for one, other, where in ((b"a\n\n", b"a\nb\n", f"{ours}:2"), (b"a\nb\n", b"a\n\n", f"{theirs}:2")):
        ours.write_bytes(one)
        theirs.write_bytes(other)
        with pytest.raises(DataError) as refused:
            list(read_pairs(ours, theirs))
        assert refused.value.message == f"{where}: an empty line in parallel text"
        assert refused.value.hint == "choose `empty`: skip or keep, or mend it"


def test_places_that_are_no_file_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"gone\.txt: no such file"):
        list(read_corpus(tmp_path / "gone.txt"))
    (tmp_path / "a.txt").write_text("text")
    with pytest.raises(DataError) as refused:
        list(read_sentences(tmp_path / "a.txt"))
    assert refused.value.message == f"{tmp_path / 'a.txt'}: no file of sentences"
    assert refused.value.hint.startswith("sentences are read from .conllu, ")
