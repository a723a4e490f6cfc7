"""Labelled pictures as a source of batches: IDX files, folders and tables; what is held back; augmentation."""

import gzip
import json
import struct

import numpy as np
import pytest
import torch

from orrery.data.pictures.augmenting import Augmentation
from orrery.data.pictures.png import write_png
from orrery.data.pictures.preparing import for_size
from orrery.data.rows.captions import read_captioned
from orrery.data.sources import SOURCES, BatchRequest
from orrery.errors import DataError, UsageError

RNG = np.random.default_rng(0)
DRAWN = RNG.integers(0, 256, (24, 6, 5), dtype=np.uint8)
LABELS = np.arange(24, dtype=np.uint8) % 3


def idx(array):
    return struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape) + array.tobytes()


def as_idx(folder):
    (folder / "t-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx(DRAWN)))
    (folder / "t-labels-idx1-ubyte.gz").write_bytes(gzip.compress(idx(LABELS)))
    return str(folder)


def as_folder(folder):
    for number, (pixels, label) in enumerate(zip(DRAWN, LABELS, strict=True)):
        (folder / str(label)).mkdir(exist_ok=True)
        (folder / str(label) / f"{number:02}.png").write_bytes(write_png(torch.from_numpy(pixels)[None]))
    return str(folder)


def as_table(folder):
    as_folder(folder)
    rows = [{"file_name": f"{label}/{n:02}.png", "label": str(label)} for n, label in enumerate(LABELS)]
    (folder / "all.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return str(folder / "all.jsonl")


def read(**settings):
    source = SOURCES.find("pictures")
    return source.read(source.Settings.model_validate({"kind": "pictures", **settings}))


def request(size=4, **how):
    return BatchRequest("pictures", 1, size, 7, pictures=(for_size(6, 5, 1), (1, 6, 5)), **how)


@pytest.mark.parametrize("written", [as_idx, as_folder, as_table])
def test_pictures_and_labels_come_as_they_were_drawn(written, tmp_path):
    source = read(train=written(tmp_path))
    assert source.labels == {"0": 8, "1": 8, "2": 8}
    batches = source.examples(request()).train
    found = {}
    for step in range(6):  # an epoch
        batch = batches.batch(step)
        for image, label in zip(batch["images"], batch["labels"], strict=True):
            pixels = ((image[0] * 0.5 + 0.5) * 255).round().to(torch.uint8)
            found[pixels.numpy().tobytes()] = int(label)
    assert found == {pixels.tobytes(): int(label) for pixels, label in zip(DRAWN, LABELS, strict=True)}


def test_a_share_of_each_label_is_held_back_and_equal_pictures_stay_together(tmp_path):
    source = read(train=as_idx(tmp_path), split={"every": 4, "by": "text"})
    assert {row.target for row in source.held_back} == {"0", "1", "2"}
    assert not {row.key for row in source.train} & {row.key for row in source.held_back}
    again = np.concatenate([DRAWN, DRAWN])
    (tmp_path / "t-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx(again)))
    (tmp_path / "t-labels-idx1-ubyte.gz").write_bytes(gzip.compress(idx(np.concatenate([LABELS, LABELS]))))
    source = read(train=str(tmp_path), split={"every": 4, "by": "text"})
    assert not {row.key for row in source.train} & {row.key for row in source.held_back}
    held_back = source.examples(request()).held_back
    assert sum(len(held_back.source.batch(n)["labels"]) for n in range(held_back.batches)) == len(source.held_back)
    with pytest.raises(UsageError, match="evaluation ends"):
        held_back.source.batch(held_back.batches)


def test_a_batch_depends_on_seed_and_step_alone(tmp_path):
    settings = {"train": as_idx(tmp_path), "augment": {"rotate": 20, "shift": 0.2, "flip": True}}
    one, two = (read(**settings).examples(request()).train for _ in range(2))
    one.batch(0)
    assert torch.equal(one.batch(5)["images"], two.batch(5)["images"])
    assert not torch.equal(one.batch(5)["images"], one.batch(11)["images"])
    plain = read(train=settings["train"]).examples(request()).train
    assert torch.equal(plain.batch(5)["labels"], one.batch(5)["labels"])
    assert not torch.equal(plain.batch(5)["images"], one.batch(5)["images"])


def test_each_change_is_the_map_that_it_names():
    rng = np.random.default_rng(3)
    pixels = torch.from_numpy(RNG.integers(0, 256, (8, 3, 9, 9), dtype=np.uint8))
    assert torch.equal(Augmentation().apply(pixels, rng), pixels)
    mirrored = Augmentation(flip=True).apply(pixels, rng)
    flipped = [torch.equal(after, before.flip(-1)) for after, before in zip(mirrored, pixels, strict=True)]
    kept = [torch.equal(after, before) for after, before in zip(mirrored, pixels, strict=True)]
    assert any(flipped)
    assert any(kept)
    assert all(a or b for a, b in zip(flipped, kept, strict=True))
    # a quarter turn, drawn exactly: the rotation is about the middle, in pixels, whatever the sides
    turned = Augmentation(rotate=90)

    class Ends:
        """Draws the upper bound."""

        def uniform(self, low, high, count):
            return np.full(count, high, dtype=np.float64)

    assert torch.equal(turned.apply(pixels, Ends()), pixels.rot90(1, (2, 3))) or torch.equal(
        turned.apply(pixels, Ends()), pixels.rot90(-1, (2, 3))
    )
    moved = Augmentation(shift=1 / 9).apply(pixels, Ends())
    assert torch.equal(moved[..., :-1, :-1], pixels[..., 1:, 1:])


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda f: (f / "t-labels-idx1-ubyte.gz").unlink(), "no such file"),
        (lambda f: (f / "t-labels-idx1-ubyte.gz").write_bytes(gzip.compress(idx(LABELS[:-1]))), "24 pictures, and"),
        (lambda f: (f / "t-labels-idx1-ubyte.gz").write_bytes(gzip.compress(idx(DRAWN))), "exchanged"),
        (lambda f: (f / "t-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx(DRAWN)[:-1])), "its head says"),
        (lambda f: (f / "t-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx(DRAWN) + b"x")), "it has more"),
        (lambda f: (f / "t-images-idx3-ubyte.gz").write_bytes(b"no gzip"), "damaged"),
        (lambda f: (f / "t-images-idx3-ubyte.gz").write_bytes(gzip.compress(b"hello")), "no IDX file"),
        (
            lambda f: (f / "t-images-idx3-ubyte.gz").write_bytes(
                gzip.compress(struct.pack(">BBBB3I", 0, 0, 8, 3, 1 << 20, 1 << 20, 1 << 20))
            ),
            "says that its shape",
        ),
        (lambda f: (f / "t-labels-idx1-ubyte.gz").write_bytes(gzip.compress(idx(LABELS * 0))), "nothing to tell apart"),
        (lambda f: (f / "u-images-idx3-ubyte").write_bytes(b""), "several files"),
    ],
)
def test_damaged_files_are_refused_by_name(spoil, says, tmp_path):
    as_idx(tmp_path)
    spoil(tmp_path)
    with pytest.raises(DataError, match=says):
        read(train=str(tmp_path))


def test_folders_and_tables_that_hold_no_pictures_are_refused(tmp_path):
    with pytest.raises(DataError, match="no such file or folder"):
        read(train=str(tmp_path / "nowhere"))
    with pytest.raises(DataError, match="holds no folder with pictures"):
        read(train=str(tmp_path))
    (tmp_path / "a.csv").write_text("file_name,text\nx.png,hello\n")
    with pytest.raises(DataError, match="the label among file_name, text"):
        read(train=str(tmp_path / "a.csv"))
    (tmp_path / "b.csv").write_text("file_name,label\nx.png,a\n")
    with pytest.raises(DataError, match="cannot be read"):
        read(train=str(tmp_path / "b.csv"))
    (tmp_path / "c.csv").write_text("file_name,label\nx.png,\n")
    with pytest.raises(DataError, match="needs a file"):
        read(train=str(tmp_path / "c.csv"))
    (tmp_path / "pictures.bin").write_bytes(b"1234")
    with pytest.raises(DataError, match="no IDX file"):
        read(train=str(tmp_path / "pictures.bin"))


def test_a_damaged_picture_in_a_folder_is_named(tmp_path):
    as_folder(tmp_path)
    (tmp_path / "1" / "01.png").write_bytes(b"\x89PNG\r\n\x1a\nrest")
    with pytest.raises(DataError, match=r"01\.png is broken"):
        read(train=str(tmp_path)).examples(request())


def test_a_model_of_texts_cannot_learn_pictures(tmp_path):
    with pytest.raises(UsageError, match="reads tokens, the data are pictures"):
        read(train=as_idx(tmp_path)).examples(BatchRequest("pictures", 1, 4, 7))


def test_the_parts_of_a_data_set_are_no_labels(tmp_path):
    for part in ("train", "val"):
        (tmp_path / part).mkdir()
        as_folder(tmp_path / part)
    with pytest.raises(DataError, match=r"holds the parts of a data set \(train, val\)") as caught:
        read(train=str(tmp_path))
    assert f"--train {tmp_path / 'train'}" in str(caught.value)
    assert read(train=str(tmp_path / "train"), val=str(tmp_path / "val")).labels == {"0": 8, "1": 8, "2": 8}


def test_what_other_systems_leave_in_a_folder_is_no_picture_and_loose_pictures_are_refused(tmp_path):
    as_folder(tmp_path)
    (tmp_path / "__MACOSX" / "0").mkdir(parents=True)
    for name in ("0/._00.png", "__MACOSX/0/._00.png"):
        (tmp_path / name).write_bytes(b"note")
    assert read(train=str(tmp_path)).labels == {"0": 8, "1": 8, "2": 8}
    (tmp_path / "loose.png").write_bytes((tmp_path / "0" / "00.png").read_bytes())
    with pytest.raises(DataError, match=r"pictures that are in none, as loose\.png"):
        read(train=str(tmp_path))


@pytest.mark.parametrize("end", ["jsonl", "csv"])
def test_a_table_of_metadata_says_what_the_pictures_of_its_folder_are(end, tmp_path):
    rows = [(f"{n:02}.png", f"label {label}") for n, label in enumerate(LABELS)]
    for pixels, (name, _) in zip(DRAWN, rows, strict=True):
        (tmp_path / name).write_bytes(write_png(torch.from_numpy(pixels)[None]))
    lines = [
        json.dumps({"file_name": name, "label": label}) if end == "jsonl" else f"{name},{label}" for name, label in rows
    ]
    (tmp_path / f"metadata.{end}").write_text("\n".join(["file_name,label"] * (end == "csv") + lines))
    assert read(train=str(tmp_path)).labels == {"label 0": 8, "label 1": 8, "label 2": 8}


def test_pictures_that_a_parquet_file_holds(tmp_path):
    pytest.importorskip("pyarrow")
    import pyarrow
    import pyarrow.parquet

    contents = [write_png(torch.from_numpy(pixels)[None]) for pixels in DRAWN]
    table = pyarrow.table({"img": [{"bytes": content, "path": None} for content in contents], "label": LABELS.tolist()})
    pyarrow.parquet.write_table(table, tmp_path / "a.parquet")
    source = read(train=str(tmp_path / "a.parquet"))
    assert source.labels == {"0": 8, "1": 8, "2": 8}
    assert all((row.pixels()[0].numpy() == pixels).all() for row, pixels in zip(source.train, DRAWN, strict=True))


def test_rows_about_one_picture_are_its_captions(tmp_path):
    as_folder(tmp_path)
    (tmp_path / "captions.csv").write_text("image,caption\n0/00.png,a\n1/01.png,b\n0/00.png,c\n0/00.png,d\n")
    found = list(read_captioned(str(tmp_path / "captions.csv")))
    assert [row.target for row in found] == [("a", "c", "d"), ("b",)]
    assert [row.where.rpartition("captions.csv")[2] for row in found] == [":2 (0/00.png)", ":3 (1/01.png)"]
    (tmp_path / "metadata.jsonl").write_text(json.dumps({"file_name": "0/00.png", "text": "a"}))
    assert [row.target for row in read_captioned(str(tmp_path))] == [("a",)]
