"""Pictures in arrays: CIFAR's batches as Python 2 pickled them and as bytes, and numpy's .npz."""

import pickle
import struct
from pathlib import Path

import numpy as np
import pytest

from orrery.cli.places import _data as checked_source
from orrery.data.overview import overview
from orrery.data.rows.pictures import read_pictures
from orrery.errors import DataError

RNG = np.random.default_rng(0)
PIXELS = RNG.integers(0, 256, (6, 3072), dtype=np.uint8)
NUMBERS = [0, 2, 1, 1, 0, 2]
NAMES = ["plane", "car", "bird"]


def old(value: object) -> bytes:
    """Return the instructions with which Python 2 pickles a value, texts as bytes without a coding."""
    if isinstance(value, int):
        return b"J" + struct.pack("<i", value)
    if isinstance(value, str | bytes):
        content = value.encode() if isinstance(value, str) else value
        return b"T" + struct.pack("<i", len(content)) + content
    if isinstance(value, list):
        return b"](" + b"".join(map(old, value)) + b"e"
    if isinstance(value, dict):
        return b"}(" + b"".join(old(key) + old(one) for key, one in value.items()) + b"u"
    assert isinstance(value, np.ndarray)
    kind = b"cnumpy\ndtype\n" + old("u1") + old(0) + old(1) + b"\x87R(" + old(3) + old("|") + b"NNN" + old(-1) * 2
    shape = old(value.shape[0]) + old(value.shape[1]) + b"\x86"
    begun = b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\n" + old(0) + b"\x85" + old("b") + b"\x87R("
    return begun + old(1) + shape + kind + old(0) + b"tb" + b"\x89" + old(value.tobytes()) + b"tb"


def cifar_10(folder: Path) -> None:
    for number, rows in ((1, slice(0, 2)), (2, slice(2, 4))):
        batch = {"batch_label": "one", "labels": NUMBERS[rows], "data": PIXELS[rows], "filenames": ["a", "b"]}
        (folder / f"data_batch_{number}").write_bytes(b"\x80\x02" + old(batch) + b".")
    (folder / "test_batch").write_bytes(b"\x80\x02" + old({"labels": NUMBERS[4:], "data": PIXELS[4:]}) + b".")
    meta = {"num_cases_per_batch": 2, "label_names": NAMES, "num_vis": 3072}
    (folder / "batches.meta").write_bytes(b"\x80\x02" + old(meta) + b".")


def as_bytes(folder: Path) -> None:
    for name, rows in (("data_batch_1", slice(0, 2)), ("data_batch_2", slice(2, 4)), ("test_batch", slice(4, 6))):
        own = np.concatenate([np.array(NUMBERS[rows], np.uint8)[:, None], PIXELS[rows]], 1)
        own.tofile(folder / f"{name}.bin")
    (folder / "batches.meta.txt").write_text("\n".join(NAMES) + "\n\n")


def cifar_100(folder: Path) -> None:
    for name, rows in (("train", slice(0, 4)), ("test", slice(4, 6))):
        batch = {"fine_labels": NUMBERS[rows], "coarse_labels": [0] * len(NUMBERS[rows]), "data": PIXELS[rows]}
        (folder / name).write_bytes(b"\x80\x02" + old(batch) + b".")
    (folder / "meta").write_bytes(b"\x80\x02" + old({"fine_label_names": NAMES, "coarse_label_names": ["x"]}) + b".")


@pytest.mark.parametrize("write", [cifar_10, as_bytes, cifar_100])
def test_cifars_batches_are_read_by_their_parts(write, tmp_path):
    write(tmp_path)
    for part, rows in (("train", slice(0, 4)), ("test", slice(4, 6))):
        found = list(read_pictures(checked_source(f"{tmp_path}/{part}")))
        assert [row.target for row in found] == [NAMES[number] for number in NUMBERS[rows]]
        assert np.array_equal(np.stack([row.pixels().numpy().ravel() for row in found]), PIXELS[rows])
    with pytest.raises(DataError, match="the parts of CIFAR"):
        list(read_pictures(str(tmp_path)))


def test_arrays_of_pictures_are_shown_as_no_texts(tmp_path):
    as_bytes(tmp_path)
    with pytest.raises(DataError, match="holds the parts of CIFAR"):
        overview(str(tmp_path), None, 3, "text")  # its list of labels was shown as the one document
    with pytest.raises(DataError, match="labelled pictures in arrays, and no texts"):
        overview(f"{tmp_path}/train", None, 3, "text")


def test_a_batch_that_would_run_something_or_does_not_fit_is_refused(tmp_path):
    cifar_10(tmp_path)
    (tmp_path / "test_batch").write_bytes(pickle.dumps({"labels": print}))
    with pytest.raises(DataError, match=r"wants to call builtins\.print, which is code"):
        list(read_pictures(f"{tmp_path}/test"))
    (tmp_path / "test_batch").write_bytes(b"\x80\x02" + old({"labels": [0, 7], "data": PIXELS[:2]}) + b".")
    with pytest.raises(DataError, match="do not fit together"):
        list(read_pictures(f"{tmp_path}/test"))


def test_arrays_of_numpy_are_read_by_their_parts(tmp_path):
    colours, numbers = PIXELS[:, :48].reshape(6, 4, 4, 3), np.array(NUMBERS, np.uint8)
    parts = {
        f"{p}_{kind}": a for p in ("train", "val") for kind, a in (("images", colours), ("labels", numbers[:, None]))
    }
    np.savez(tmp_path / "med.npz", **parts)
    found = list(read_pictures(checked_source(f"{tmp_path}/med.npz/val")))
    assert [row.target for row in found] == [str(number) for number in NUMBERS]
    assert np.array_equal(np.stack([row.pixels().permute(1, 2, 0).numpy() for row in found]), colours)
    np.savez(tmp_path / "keras.npz", x_train=colours[..., 0], y_train=numbers)
    assert next(read_pictures(f"{tmp_path}/keras.npz")).pixels().shape == (1, 4, 4)
    np.savez(tmp_path / "chest.npz", images=colours, labels=np.zeros((6, 14), np.uint8))
    np.savez(tmp_path / "volumes.npz", images=np.zeros((6, 5, 5, 5), np.uint8), labels=numbers)
    np.savez(tmp_path / "objects.npz", images=np.array([None]), labels=numbers)
    (tmp_path / "broken.npz").write_text("PK")
    for name, says in {
        "med": "holds the parts train, val", "chest": r"labels of uint8 in \[6, 14\]", "volumes": "holds no pictures",
        "objects": "no pictures with labels", "broken": "no pictures with labels",
    }.items():  # fmt: skip
        with pytest.raises(DataError, match=says):
            list(read_pictures(f"{tmp_path}/{name}.npz"))


def test_kmnists_and_stl_10s_two_files_are_read_by_their_parts(tmp_path):
    grey, numbers = PIXELS[:, :784].reshape(6, 28, 28), np.array(NUMBERS, np.uint8)
    for part, rows in (("train", slice(0, 4)), ("test", slice(4, 6))):
        np.savez(tmp_path / f"kmnist-{part}-imgs.npz", grey[rows])
        np.savez(tmp_path / f"kmnist-{part}-labels.npz", numbers[rows])
    for source in (f"{tmp_path}/test", f"{tmp_path}/kmnist-test-imgs.npz"):
        found = list(read_pictures(checked_source(source)))
        assert [row.target for row in found] == ["0", "2"]
        assert np.array_equal(found[1].pixels()[0].numpy(), grey[5])
    with pytest.raises(DataError, match=r"holds pictures in kmnist-test-imgs\.npz, kmnist-train-imgs\.npz"):
        list(read_pictures(str(tmp_path)))
    (tmp_path / "kmnist-test-labels.npz").unlink()
    with pytest.raises(DataError, match=r"kmnist-test-labels\.npz, the labels of .* is missing"):
        list(read_pictures(f"{tmp_path}/test"))
    stl = tmp_path / "stl"
    stl.mkdir()
    colours = RNG.integers(0, 256, (2, 3, 96, 96), dtype=np.uint8)
    colours.swapaxes(2, 3).tofile(stl / "train_X.bin")  # written by columns, as MATLAB does
    np.array([3, 1], np.uint8).tofile(stl / "train_y.bin")
    (stl / "class_names.txt").write_text("\n".join(NAMES))
    found = list(read_pictures(checked_source(f"{stl}/train")))
    assert [row.target for row in found] == ["bird", "plane"]
    assert np.array_equal(np.stack([row.pixels().numpy() for row in found]), colours)
    (stl / "train_y.bin").write_bytes(b"\1")
    with pytest.raises(DataError, match="are no pictures for 1 labels"):
        list(read_pictures(str(stl)))
