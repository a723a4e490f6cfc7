"""Folders of PECOS and files of the XMLRepository, as scipy and their descriptions have them; what is refused."""

import gzip
import json

import numpy as np
import pytest
from scipy import sparse

from orrery.data.many_labels.files import is_pecos, is_repository, read_npz, read_pecos, read_repository
from orrery.data.rows.many_labels import read_many_labels
from orrery.data.sources.many_labels import ManyLabelsSettings
from orrery.errors import DataError


@pytest.fixture
def pecos(tmp_path):
    right = np.array([[0, 1, 1], [1, 0, 0], [0, 0, 0]])
    for part, table in (("trn", right), ("tst", right[::-1])):
        sparse.save_npz(tmp_path / f"Y.{part}.npz", sparse.csr_matrix(table.astype(np.float32)))
        (tmp_path / f"X.{part}.txt").write_text(f"{part} one\n{part} two\n{part} three\n")
    return tmp_path


def test_a_folder_of_pecos_is_read(pecos):
    assert is_pecos(str(pecos))
    assert [(row.text, row.classes) for row in read_pecos(str(pecos))] == [
        ("trn one", ("1", "2")), ("trn two", ("0",)), ("trn three", ()),
    ]  # fmt: skip
    (pecos / "output-items.txt").write_text("red\ngreen\nblue\n")
    assert [row.classes for row in read_pecos(str(pecos / "tst"))] == [(), ("red",), ("green", "blue")]


def test_a_matrix_is_read_as_scipy_wrote_it(tmp_path):
    table = sparse.random(20, 30, 0.1, format="csr", random_state=0)
    sparse.save_npz(tmp_path / "y.npz", table, compressed=False)
    starts, columns, shape = read_npz(tmp_path / "y.npz")
    assert shape == (20, 30)
    assert starts.tolist() == table.indptr.tolist()
    assert columns.tolist() == table.indices.tolist()


def test_what_is_damaged_or_does_not_fit_is_refused(pecos):
    file = pecos / "Y.trn.npz"
    whole = file.read_bytes()
    (pecos / "output-items.txt").write_text("red\n")
    with pytest.raises(DataError, match=r"1 lines, Y.trn.npz has 3 labels"):
        list(read_pecos(str(pecos)))
    (pecos / "output-items.txt").unlink()
    (pecos / "X.trn.txt").write_text("one\n")
    with pytest.raises(DataError, match=r"1 texts, Y.trn.npz has 3 rows"):
        list(read_pecos(str(pecos)))
    for content in (whole[:60], b"", b"no zip at all"):
        file.write_bytes(content)
        with pytest.raises(DataError, match="no sparse matrix of scipy"):
            read_npz(file)
    sparse.save_npz(file, sparse.csc_matrix(np.eye(3)))
    with pytest.raises(DataError, match="in the format"):
        read_npz(file)
    arrays = {"indptr": [0, 1, 2], "indices": [0, 7], "shape": [2, 3], "data": [1, 1], "format": np.array(b"csr")}
    for change in ({}, {"indices": [0, -1]}, {"indptr": [0, 2, 1]}, {"indptr": [0, 2]}):
        np.savez(file, **{**arrays, **change})
        with pytest.raises(DataError, match="do not fit 2 x 3"):
            read_npz(file)
    np.savez(file, **{**arrays, "indices": np.array([object()])})
    with pytest.raises(DataError, match="allow_pickle"):
        read_npz(file)


def test_a_file_of_the_xmlrepository_is_read_with_the_texts_beside_it(tmp_path):
    file, texts = tmp_path / "train.txt", tmp_path / "train_raw_texts.txt"
    file.write_text("3 5 4\n0,3 1:0.5 4:1.0\n2 0:1\n 3:0.25\n")
    assert is_repository(str(file))
    with pytest.raises(DataError, match="an encoder reads texts"):
        list(read_repository(str(file)))
    texts.write_text("one\ntwo\nthree\n")
    assert [(row.text, row.classes) for row in read_repository(str(file))] == [
        ("one", ("0", "3")), ("two", ("2",)), ("three", ()),
    ]  # fmt: skip
    assert not is_repository(str(texts))
    for label in ("4", "-1", "x"):
        file.write_text(f"3 5 4\n0,{label} 1:0.5\n2 0:1\n 3:0.25\n")
        with pytest.raises(DataError, match="is none of 0 to 3"):
            list(read_repository(str(file)))
    file.write_text("4 5 4\n0 1:0.5\n2 0:1\n 3:0.25\n")
    with pytest.raises(DataError, match="4 texts are said, 3 lines follow"):
        list(read_repository(str(file)))


def test_raw_texts_of_the_xmlrepository_have_the_labels_of_their_numbers(tmp_path):
    """As LF-AmazonTitles-131K has them; titles that two labels share are told apart by their numbers."""
    rows = [
        {"uid": "a", "title": "Girls Ballet", "content": "", "target_ind": [2, 0], "target_rel": [1.0, 1.0]},
        {"uid": "b", "title": "None", "content": "x", "target_ind": [], "target_rel": []},
    ]
    packed = gzip.compress("".join(json.dumps(row) + "\n" for row in rows).encode())
    (tmp_path / "trn.json.gz").write_bytes(packed)
    source = str(tmp_path / "trn.json.gz")
    settings = ManyLabelsSettings(train=source)
    assert [(row.text, row.target) for row in read_many_labels(source, settings)] == [
        ("Girls Ballet", ("2", "0")),
        ("None", ()),
    ]
    labels = "".join(json.dumps({"uid": n, "title": title}) + "\n" for n, title in enumerate(["tutu", "shoe", "tutu"]))
    (tmp_path / "lbl.json.gz").write_bytes(gzip.compress(labels.encode()))
    assert next(read_many_labels(source, settings)).target == ("tutu [2]", "tutu [0]")
    (tmp_path / "lbl.json.gz").write_bytes(gzip.compress(labels.splitlines()[0].encode()))
    with pytest.raises(DataError, match=r"a label of \[2, 0\] is none of 0 to 0"):
        list(read_many_labels(source, settings))


@pytest.mark.parametrize("numbers", [None, 3, "3", ["a"], [1.0], [-1], [True]])
def test_numbers_of_labels_that_are_none_are_told(numbers, tmp_path):
    rows = [{"title": "a", "target_ind": [0]}, {"title": "b", "target_ind": numbers}]
    (tmp_path / "trn.json.gz").write_bytes(gzip.compress("".join(json.dumps(row) + "\n" for row in rows).encode()))
    source = str(tmp_path / "trn.json.gz")
    with pytest.raises(DataError, match=r"trn.json.gz:2: target_ind is .*, and no list of numbers from 0"):
        list(read_many_labels(source, ManyLabelsSettings(train=source)))


def test_attentionxmls_texts_have_the_labels_of_the_same_line(tmp_path):
    (tmp_path / "train_texts.txt").write_text("one text\nother\n")
    (tmp_path / "train_labels.txt").write_text("a b\n\n")
    source = str(tmp_path / "train_texts.txt")
    found = [(row.text, row.target) for row in read_many_labels(source, ManyLabelsSettings(train=source))]
    assert found == [("one text", ("a", "b")), ("other", ())]
    (tmp_path / "train_labels.txt").write_text("a b\n")
    with pytest.raises(DataError, match=r"2 texts, .*train_labels\.txt has 1 lines"):
        list(read_many_labels(source, ManyLabelsSettings(train=source)))
