"""Matches: columns, groups, and batches that never tear a pair apart."""

import pytest
import torch

from orrery.data.batches.matches import both_as_rows
from orrery.data.records import Pair
from orrery.data.sources import BatchRequest
from orrery.data.sources.matches import MatchSettings, MatchSource, groups
from orrery.errors import DataError
from orrery.text.train import train_tokenizer

ROWS = [("a b c" + " d" * (n % 7), f"w{n}" + " x" * (n % 5)) for n in range(23)]


def write(path, names, rows=ROWS):
    path.write_text(",".join(names) + "\n" + "".join(",".join(row) + "\n" for row in rows))
    return str(path)


def source(train, **settings):
    return MatchSource.read(MatchSettings(train=train, **settings))


@pytest.mark.parametrize("names", [("anchor", "positive"), ("query", "passage"), ("source", "target"), ("x", "y")])
def test_the_two_columns_are_found(names, tmp_path):
    file = write(tmp_path / "a.csv", names)
    settings = {"text": "x"} if names[0] == "x" else {}
    read_here = source(file, **settings)
    assert [(pair.source, pair.target) for pair in read_here.train] == ROWS
    turned = source(file, text=names[1], pair=names[0])
    assert [(pair.target, pair.source) for pair in turned.train] == ROWS
    assert turned.fingerprint != read_here.fingerprint


def test_what_is_wrong_is_named(tmp_path):
    rows = [("a", "b"), ("c", " ")]
    with pytest.raises(DataError, match=r"a\.csv:3: column 'passage' is empty"):
        source(write(tmp_path / "a.csv", ("query", "passage"), rows))
    with pytest.raises(DataError, match="hold text and pair among x, y, z") as caught:
        source(write(tmp_path / "b.csv", ("x", "y", "z"), [("a", "b", "c")]))
    assert "--data.text COLUMN --data.pair COLUMN" in str(caught.value)


@pytest.mark.parametrize("values", [("1", "0"), ("true", "False"), ("1.0", "0.0")])
def test_rows_that_do_not_belong_together_are_left_out_and_told(values, tmp_path):
    rows = [(*row, values[n % 3 == 0]) for n, row in enumerate(ROWS)]
    found = source(write(tmp_path / "a.csv", ("question1", "question2", "is_duplicate"), rows))
    assert [(pair.source, pair.target) for pair in found.train] == [row for n, row in enumerate(ROWS) if n % 3]
    assert any(note.endswith("a.csv: 8 rows left out, whose is_duplicate is 0") for note in found.remarks())


@pytest.mark.parametrize(
    ("name", "value"), [("score", "3.8"), ("label", "contradiction"), ("label", "2"), ("score", "")]
)
def test_other_grades_are_refused(name, value, tmp_path):
    file = write(tmp_path / "a.csv", ("sentence1", "sentence2", name), [("a", "b", "1"), ("c", "d", value)])
    with pytest.raises(DataError, match=rf"a\.csv:3: {name} is '{value}', and every row is learnt as two texts"):
        source(file)


def test_a_column_of_negatives_is_told(tmp_path):
    rows = [(*row, "other") for row in ROWS]
    for names in (("anchor", "positive", "negative"), ("query", "positive", "negative")):
        found = source(write(tmp_path / "a.csv", names, rows))
        assert [(pair.source, pair.target) for pair in found.train] == ROWS
        assert any("negative is not read" in note for note in found.remarks())


def test_pairs_that_share_a_text_belong_together():
    texts = [("a", "1"), ("b", "2"), ("a", "3"), ("c", "3"), ("d", "d"), ("2", "e")]
    numbers = groups([Pair(n, *both) for n, both in enumerate(texts)])
    assert numbers == [0, 1, 0, 0, 2, 1]


def test_both_texts_stand_in_one_batch():
    batch = {
        "ids": torch.tensor([[5, 6, 7], [8, 0, 0]]),
        "real": torch.tensor([[True, True, True], [True, False, False]]),
        "second": torch.tensor([[1, 0], [2, 3]]),
        "second_length": torch.tensor([1, 2]),
        "group": torch.tensor([4, 9]),
    }
    rows = both_as_rows(batch)
    assert rows["ids"].tolist() == [[5, 6, 7], [8, 0, 0], [1, 0, 0], [2, 3, 0]]
    assert rows["real"].sum(1).tolist() == [3, 1, 1, 2]
    assert rows["group"].tolist() == [4, 9, 4, 9]


def test_every_pair_comes_once_an_epoch_with_its_own(tmp_path):
    whole = source(write(tmp_path / "a.csv", ("query", "passage")), split={"every": 4})
    assert (len(whole.train), len(whole.held_back)) == (18, 5)
    tokenizer = train_tokenizer("word", whole.texts())
    examples = whole.examples(BatchRequest("matches", 6, 3, 0, tokenizer))
    known = {(pair.source, pair.target) for pair in whole.train}
    cut = {(tokenizer.decode(tokenizer.encode(a)[:6]), tokenizer.decode(tokenizer.encode(b)[:6])) for a, b in known}
    drawn = []
    for step in range(6 * 64):
        batch = examples.train.batch(step)
        texts = [tokenizer.decode(ids[real].tolist()) for ids, real in zip(batch["ids"], batch["real"], strict=True)]
        assert len(texts) == 6
        assert batch["group"][:3].tolist() == batch["group"][3:].tolist()
        drawn += list(zip(texts[:3], texts[3:], strict=True))
    assert set(drawn) == cut
    assert {drawn.count(pair) % 64 for pair in cut} == {0}
    assert any("cut to batches.length" in note for note in examples.notes)
    windows = examples.held_back
    assert windows.batches == 2
    assert sum(len(windows.source.batch(n)["ids"]) for n in range(2)) == 10
    assert examples.tokens == {"rows": sum(min(6, len(tokenizer.encode(t))) for pair in known for t in pair)}
