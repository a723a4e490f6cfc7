import numpy as np
import pytest

from orrery.data.shards import HEADER, Shard, write_shard
from orrery.errors import DataError

PRINT = "ab" * 32


@pytest.mark.parametrize(("vocabulary", "width"), [(300, 2), (65_535, 2), (65_536, 2), (65_537, 4), (70_000, 4)])
def test_ids_come_back_and_the_vocabulary_chooses_the_width(vocabulary, width, tmp_path):
    parts = [[0, vocabulary - 1], [], [7]]
    info = write_shard(tmp_path / "a", parts, vocabulary, PRINT)
    shard = Shard.open(tmp_path / "a", PRINT)
    assert shard.ids.tolist() == [0, vocabulary - 1, 7]
    assert shard.info == info
    assert (tmp_path / "a").stat().st_size == 64 + 3 * width
    assert [file.name for file in tmp_path.iterdir()] == ["a"]


def test_one_array_is_one_part_and_no_ids_are_a_shard_too(tmp_path):
    write_shard(tmp_path / "a", np.arange(100_000) % 50, 50, PRINT)
    assert (Shard.open(tmp_path / "a").ids == np.arange(100_000) % 50).all()
    write_shard(tmp_path / "b", [], 50, PRINT)
    assert len(Shard.open(tmp_path / "b").ids) == 0


@pytest.mark.parametrize("bad", [-1, 300, 70_000])
def test_an_id_outside_the_vocabulary_is_never_written(bad, tmp_path):
    write_shard(tmp_path / "a", [[1, 2]], 300, PRINT)
    with pytest.raises(DataError, match=f"token id {bad} at place 3 is outside the vocabulary of 300"):
        write_shard(tmp_path / "a", [[1, 2], [3, bad]], 300, PRINT)
    assert Shard.open(tmp_path / "a").ids.tolist() == [1, 2]
    assert [file.name for file in tmp_path.iterdir()] == ["a"]


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
        (changed(24, b"\x02\0"), "token id 2 at place 1 is outside the vocabulary of 2"),
    ],
    ids=range(9),
)
def test_damage_is_named(damage, message, tmp_path):
    write_shard(tmp_path / "a", [[1, 2]], 300, PRINT)
    (tmp_path / "a").write_bytes(damage((tmp_path / "a").read_bytes()))
    with pytest.raises(DataError, match=message):
        Shard.open(tmp_path / "a")


def test_another_tokenizer_and_a_missing_file_are_named(tmp_path):
    write_shard(tmp_path / "a", [[1]], 300, PRINT)
    with pytest.raises(DataError, match="made by tokenizer abababababab, not by cdcdcdcdcdcd"):
        Shard.open(tmp_path / "a", "cd" * 32)
    with pytest.raises(DataError, match="no such token shard"):
        Shard.open(tmp_path / "b")


def test_the_header_is_64_bytes():
    assert HEADER.size == 64
