import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from orrery.data.batches.token_windows import CropBatches, SequentialWindows
from orrery.data.shards.file import HEADER, Shard, ShardFile
from orrery.data.shards.index import Index, ShardPlan, ShardRecord, ShardSet, SplitRecord, verify
from orrery.errors import DataError

PRINT = "ab" * 32


def write(path, parts, vocabulary=300):
    file = ShardFile(path, vocabulary, PRINT)
    for part in parts:
        file.append(np.asarray(part, np.int64))
    return file.finish()


def write_folder(folder, lengths, vocabulary=300, complete=True):
    """Write shards of these lengths, ids 0, 1, 2, ... through all of them, and their index."""
    starts = np.cumsum([0, *lengths])
    names = [f"train-{number:05}.tokens" for number in range(len(lengths))]
    shards = []
    for name, start, length in zip(names, starts, lengths, strict=False):
        digest = write(folder / name, [np.arange(start, start + length)], vocabulary)
        shards.append(ShardRecord(file=name, tokens=length, sha256=digest))
    plan = ShardPlan(
        source="a",
        tokenizer=PRINT,
        vocabulary=vocabulary,
        end=0,
        shard_tokens=9,
        every=20,
        tail=None,
        column="text",
        invalid="error",
        skip_bad=0,
    )
    splits = {"train": SplitRecord(tokens=sum(lengths), shards=tuple(shards)), "validation": SplitRecord()}
    Index(complete=complete, plan=plan, splits=splits).write(folder)


def test_a_record_of_the_index_is_never_changed():
    record = ShardRecord(file="train-00000.tokens", tokens=3, sha256=PRINT)
    with pytest.raises(ValidationError, match="frozen"):
        record.tokens = 4


@pytest.mark.parametrize(("vocabulary", "width"), [(300, 2), (65_535, 2), (65_536, 2), (65_537, 4), (70_000, 4)])
def test_ids_come_back_and_the_vocabulary_chooses_the_width(vocabulary, width, tmp_path):
    write(tmp_path / "a", [[0, vocabulary - 1], [], [7]], vocabulary)
    shard = Shard.open(tmp_path / "a", PRINT)
    assert shard.ids.tolist() == [0, vocabulary - 1, 7]
    assert (len(shard), shard.info.vocabulary) == (3, vocabulary)
    assert (tmp_path / "a").stat().st_size == 64 + 3 * width


def test_no_ids_are_a_shard_too(tmp_path):
    write(tmp_path / "b", [], 50)
    assert len(Shard.open(tmp_path / "b").ids) == 0


@pytest.mark.parametrize("bad", [-1, 300, 70_000])
def test_an_id_outside_the_vocabulary_is_never_written(bad, tmp_path):
    file = ShardFile(tmp_path / "a", 300, PRINT)
    file.append(np.array([1, 2]))
    with pytest.raises(DataError, match=f"token id {bad} at place 3 is outside the vocabulary of 300"):
        file.append(np.array([3, bad]))
    file.finish()
    assert Shard.open(tmp_path / "a").ids.tolist() == [1, 2]


def test_what_is_not_finished_is_no_shard_and_can_be_continued(tmp_path):
    whole = write(tmp_path / "whole", [[1, 2, 3, 4]])
    file = ShardFile(tmp_path / "a", 300, PRINT)
    file.append(np.array([1, 2, 99]))
    file.close()
    with pytest.raises(DataError, match=r"not a token shard"):
        Shard.open(tmp_path / "a")
    file = ShardFile(tmp_path / "a", 300, PRINT, kept=2)
    file.append(np.array([3, 4]))
    assert file.finish() == whole
    assert (tmp_path / "a").read_bytes() == (tmp_path / "whole").read_bytes()
    with pytest.raises(DataError, match=r"72 bytes, fewer than the 74 already written"):
        ShardFile(tmp_path / "a", 300, PRINT, kept=5)


def changed(position, value):
    return lambda content: content[:position] + value + content[position + len(value) :]


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda content: b"", "not a token shard"),
        (lambda content: content[:40], "not a token shard"),
        (changed(0, b"X"), "not a token shard"),
        (changed(8, b"\x09"), "format 9"),
        (changed(12, b"\x04"), "4 bytes an id do not fit"),
        (lambda content: content[:-1], r"67 bytes instead of 68"),
        (lambda content: content[:-2], "66 bytes instead of 68"),
        (lambda content: content + b"\0", "69 bytes instead of 68"),
    ],
    ids=range(8),
)
def test_damage_is_named_on_opening(damage, message, tmp_path):
    write(tmp_path / "a", [[1, 2]])
    (tmp_path / "a").write_bytes(damage((tmp_path / "a").read_bytes()))
    with pytest.raises(DataError, match=message):
        Shard.open(tmp_path / "a")


def test_a_wrong_id_is_refused_when_it_is_read_also_if_it_came_after_opening(tmp_path):
    write(tmp_path / "a", [[1, 2, 3]])
    shard = Shard.open(tmp_path / "a")
    (tmp_path / "a").write_bytes(changed(66, b"\xff\xff")((tmp_path / "a").read_bytes()))
    assert shard.read(0, 1).tolist() == [1]
    with pytest.raises(DataError, match=r"token id 65535 at place 1 is outside the vocabulary of 300"):
        shard.read(1, 3)
    (tmp_path / "a").write_bytes((tmp_path / "a").read_bytes()[:-2])
    with pytest.raises(DataError, match=r"ends before token 3"):
        shard.read(2, 3)
    (tmp_path / "a").unlink()
    with pytest.raises(DataError, match=r"no such token shard"):
        shard.read(0, 1)


def test_another_tokenizer_and_a_missing_file_are_named(tmp_path):
    write(tmp_path / "a", [[1]])
    with pytest.raises(DataError, match=r"made by tokenizer abababababab, not by cdcdcdcdcdcd"):
        Shard.open(tmp_path / "a", "cd" * 32)
    with pytest.raises(DataError, match=r"no such token shard"):
        Shard.open(tmp_path / "b")


def test_the_header_is_64_bytes():
    assert HEADER.size == 64


@given(lengths=st.lists(st.integers(0, 7), max_size=6), bounds=st.tuples(st.integers(-50, 50), st.integers(-50, 50)))
def test_any_slice_of_any_shards_is_that_of_one_long_array(lengths, bounds, tmp_path_factory):
    folder = tmp_path_factory.mktemp("set")
    write_folder(folder, lengths)
    whole, shards = np.arange(sum(lengths)), ShardSet.open(folder, "train", PRINT)
    assert len(shards) == len(whole)
    assert shards[bounds[0] : bounds[1]].tolist() == whole[bounds[0] : bounds[1]].tolist()
    assert shards[:].tolist() == whole.tolist()
    assert shards[:].dtype == np.dtype("<u2")


def test_batches_from_shards_are_those_of_the_array(tmp_path):
    write_folder(tmp_path, [40, 1, 0, 33, 26])
    shards, whole = ShardSet.open(tmp_path), np.arange(100)
    for make in (lambda ids: CropBatches(ids, 30, 8, seed=3), lambda ids: SequentialWindows(ids, 12, 4, stride=5)):
        for step in range(4):
            batch, expected = make(shards).batch(step), make(whole).batch(step)
            assert all(bool((batch[name] == expected[name]).all()) for name in expected)


def test_the_index_and_its_shards_must_agree(tmp_path):
    with pytest.raises(DataError, match=r"no token shards"):
        ShardSet.open(tmp_path)
    write_folder(tmp_path, [3, 4], complete=False)
    with pytest.raises(DataError, match=r"interrupted after 0 blocks"):
        ShardSet.open(tmp_path)
    write_folder(tmp_path, [3, 4])
    with pytest.raises(DataError, match=r"made by tokenizer"):
        ShardSet.open(tmp_path, "train", "cd" * 32)
    write(tmp_path / "train-00001.tokens", [[1]])
    with pytest.raises(DataError, match=r"1 tokens, the index says 4"):
        ShardSet.open(tmp_path)
    (tmp_path / "index.json").write_text((tmp_path / "index.json").read_text().replace("train-00001", "../train-00001"))
    with pytest.raises(DataError, match=r"not an index of token shards: splits.train.shards.1.file"):
        ShardSet.open(tmp_path)


def test_verify_finds_an_id_that_changed_into_another_id(tmp_path):
    write_folder(tmp_path, [3, 4])
    assert verify(tmp_path) == 7
    file = tmp_path / "train-00001.tokens"
    file.write_bytes(changed(64, b"\x07")(file.read_bytes()))
    assert ShardSet.open(tmp_path)[3:5].tolist() == [7, 4]
    with pytest.raises(DataError, match=r"train-00001.tokens: its ids changed"):
        verify(tmp_path)


def test_what_is_synced_can_be_read_by_another_program(tmp_path):
    file = ShardFile(tmp_path / "a.tokens", 50, "00" * 32)
    file.append(np.arange(7))
    file.sync()
    assert (tmp_path / "a.tokens").stat().st_size == HEADER.size + 7 * 2
    file.close()
