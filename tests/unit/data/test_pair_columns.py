"""Pairs from columns: which columns are found, lists of texts, references, and what is refused with its line."""

import json

import pytest
from pydantic import ValidationError

from orrery.data.overview import overview
from orrery.data.records import Pair
from orrery.data.rows.pair_columns import KNOWN, find_pair_columns, read_column_pairs, spread
from orrery.data.sources.pairs import PairSettings, PairSource
from orrery.errors import DataError


def write(path, *rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def source(**settings):
    return PairSource.read(PairSettings.model_validate(settings))


@pytest.mark.parametrize("names", KNOWN, ids="-".join)
def test_columns_are_found_by_their_names(names, tmp_path):
    left, right = names
    file = write(tmp_path / "a.jsonl", {"id": 1, right: "b", left: "a"})
    assert find_pair_columns(file, {}) == names
    assert list(read_column_pairs(file, names)) == [Pair(1, "a", "b")]
    assert find_pair_columns(file, {"source": left, "target": "id"}) == (left, "id")
    file = write(tmp_path / "b.jsonl", {"Id": 1, right.title(): "b", left.title(): "a"})
    assert find_pair_columns(file, {}) == (left.title(), right.title())


def test_columns_that_are_asked_for_go_before(tmp_path):
    file = write(tmp_path / "a.jsonl", {"source": "a", "target": "b", "short": "c"})
    assert find_pair_columns(file, {"target": "short"}) == ("source", "short")
    two = write(tmp_path / "b.jsonl", {"x": "a", "y": "b"})
    assert find_pair_columns(two, {"source": "y"}) == ("y", "x")
    assert find_pair_columns(two, {"target": "y"}) == ("x", "y")


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({}, r"a\.jsonl: no columns are known to hold source and target among x, y, z"),
        ({"source": "x"}, "hold target among"),
        ({"target": "x"}, "hold source among"),
        ({"target": "w"}, r"a\.jsonl: no column 'w'"),
    ],
)
def test_columns_that_cannot_be_told_are_refused(asked, words, tmp_path):
    file = write(tmp_path / "a.jsonl", {"x": "a", "y": "b", "z": "c"})
    with pytest.raises(DataError, match=words):
        find_pair_columns(file, asked)
    with pytest.raises(DataError, match="0 rows"):
        find_pair_columns(write(tmp_path / "b.jsonl"), {})


def test_tables_of_every_format_give_the_same_pairs(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    (tmp_path / "a.csv").write_text('source,target\n"a\nb",c\nd,e\n')
    (tmp_path / "a.tsv").write_text("a b\tc\nd\te\n")
    parquet.write_table(arrow.table({"source": ["a", "d"], "target": [["c", "f"], ["e"]]}), tmp_path / "a.parquet")
    assert list(read_column_pairs(tmp_path / "a.csv", ("source", "target"))) == [
        Pair(2, "a\nb", "c"),
        Pair(4, "d", "e"),
    ]
    assert list(read_column_pairs(tmp_path / "a.tsv", ("1", "2"))) == [Pair(1, "a b", "c"), Pair(2, "d", "e")]
    assert list(read_column_pairs(tmp_path / "a.parquet", ("source", "target"))) == [
        Pair(1, "a", "c", ("f",)),
        Pair(2, "d", "e"),
    ]


def test_every_target_is_trained_on_and_the_first_counts_held_back(tmp_path):
    file = write(
        tmp_path / "a.jsonl", {"source": ["a b.", "c."], "target": ["x", "y"]}, {"source": "d", "target": ["z"]}
    )
    read = source(pairs=str(file), val=str(file))
    assert read.held_back == [Pair(1, "a b. c.", "x", ("y",)), Pair(2, "d", "z")]
    assert read.pairs == [Pair(1, "a b. c.", "x"), Pair(1, "a b. c.", "y"), Pair(2, "d", "z")]
    assert spread(read.held_back) == read.pairs
    other = write(tmp_path / "b.jsonl", {"source": ["a b.", "c."], "target": ["x"]}, {"source": "d", "target": ["z"]})
    assert source(pairs=str(file), val=str(other)).fingerprint != read.fingerprint


BAD = [
    ({"source": " ", "target": "x"}, "column 'source' is empty"),
    ({"source": "x", "target": ""}, "column 'target' is empty"),
    ({"source": "x", "target": []}, "column 'target' is empty"),
    ({"source": [], "target": "x"}, "column 'source' is empty"),
    ({"source": "x", "target": ["a", " "]}, "column 'target' has an empty text"),
    ({"source": "x", "target": None}, "column 'target' is not a text but NoneType"),
    ({"source": ["x", 3], "target": "x"}, "column 'source' is not a text but int"),
    ({"source": {"a": "b"}, "target": "x"}, "column 'source' is not a text but dict"),
    ({"source": "x"}, "no column 'target'"),
]


@pytest.mark.parametrize(("row", "words"), BAD)
def test_a_bad_row_is_named(row, words, tmp_path):
    good = {"source": "a", "target": "b"}
    file = write(tmp_path / "a.jsonl", good, row, good)
    with pytest.raises(DataError, match=rf"a\.jsonl:2: {words}"):
        source(pairs=str(file))
    assert [pair.line for pair in source(pairs=str(file), skip_bad=1).pairs] == [1, 3]


def test_columns_beside_two_files_are_refused():
    with pytest.raises(ValidationError, match="columns are those of a table, and pairs are two files"):
        source(pairs={"source": "a", "target": "b"}, columns={"source": "x"})


def test_what_is_no_table_is_refused(tmp_path):
    (tmp_path / "a.txt").write_text("a\n")
    with pytest.raises(DataError, match=r"a\.txt: no file of rows"):
        source(pairs=str(tmp_path / "a.txt"))
    with pytest.raises(DataError, match="multi30k-en-de/vla: not a named parallel corpus"):
        source(pairs="multi30k-en-de/vla")
    with pytest.raises(DataError, match="unicode-names/val: no column 'name'"):
        source(pairs="unicode-names/val", columns={"source": "name"})


def test_named_sets_know_their_columns(data_set):
    for name in ("scitldr", "gsm8k"):
        data_set(name)
    held_back = source(pairs="unicode-names/val", val="scitldr/dev").held_back
    assert len(held_back) == 619
    assert sum(len(pair.references) > 0 for pair in held_back) > 300
    assert find_pair_columns("gsm8k/test", {}) == ("question", "answer")
    seen = overview("scitldr/dev", None, 1, "text")
    assert (seen.kind, seen.counts["pairs"]) == ("pairs", 619)
    assert overview("unicode-names/val", None, 1, "text").kind == "pairs"
    assert overview("unicode-names/val", None, 1, "target").kind == "documents"


def test_the_languages_of_a_translation_are_columns(tmp_path):
    rows = [{"id": str(n), "translation": {"de": f"Hallo {n}", "en": f"Hello {n}"}} for n in range(3)]
    file = write(tmp_path / "a.jsonl", *rows)
    found = source(pairs=str(file), columns={"source": "de", "target": "en"})
    assert [(pair.source, pair.target) for pair in found.pairs] == [(f"Hallo {n}", f"Hello {n}") for n in range(3)]
    assert found.remarks()[0] == "columns: en is written from de; not read: id"
    assert find_pair_columns(file, {}) == ("en", "de")
    assert find_pair_columns(
        write(tmp_path / "b.jsonl", {"translation": {"cs": "a", "sk": "b"}}), {"source": "sk"}
    ) == (
        "sk",
        "cs",
    )
    with pytest.raises(DataError, match="known to hold source and target among id, cs, sk"):
        find_pair_columns(write(tmp_path / "c.jsonl", {"id": 1, "translation": {"cs": "a", "sk": "b"}}), {})
    lacking = write(tmp_path / "d.jsonl", rows[0], {"id": "1", "translation": {"de": "x"}})
    with pytest.raises(DataError, match=r"d\.jsonl:2: no column 'en'"):
        list(read_column_pairs(lacking, ("de", "en")))


def test_a_first_row_that_is_bad_is_left_out_where_it_may(tmp_path):
    (tmp_path / "a.jsonl").write_text('no row\n{"a": "x", "b": "y", "id": 1}\n')
    found = source(pairs=str(tmp_path / "a.jsonl"), columns={"source": "a", "target": "b"}, skip_bad=1)
    assert [(pair.source, pair.target) for pair in found.pairs] == [("x", "y")]
