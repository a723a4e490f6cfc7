"""Files made to break the reader of pictures: the stated error, in time, in bounded memory."""

import os

import pytest

import bombs
from orrery.data.pictures.files import read_file
from orrery.data.pictures.preparing import preparation
from orrery.errors import DataError

pytest.importorskip("PIL.Image", reason="Pillow, of the extra vision, is not installed")
NEEDS = """
from orrery.data.pictures.files import read_file
from orrery.data.pictures.preparing import in_channels, preparation
prepared = preparation({"image_processor_type": "ViTImageProcessor"})
"""


def test_no_file_takes_long_or_much_and_each_says_what_is_wrong(tmp_path):
    import picture_bombs

    files = picture_bombs.written(tmp_path)
    assert len(files) == 43
    found = bombs.refusals(NEEDS, "prepared(in_channels(read_file(path), 3))", files)
    for file, (kind, message) in zip(files, found, strict=True):
        if file.name.startswith(picture_bombs.READ):
            assert kind == "read", (file.name, message)
        else:
            assert kind == "DataError", (file.name, kind, message)
            assert file.name in message


@pytest.mark.parametrize("place", ["gone.png", "", "a\0b", "/dev/zero", "pipe"])
def test_what_is_no_file_is_never_waited_for(tmp_path, place, monkeypatch):
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    with pytest.raises(DataError, match=r"cannot be read|is no file"):
        read_file(tmp_path / place if place != "/dev/zero" else tmp_path / "../../../../../../../../dev/zero")


def test_a_file_of_too_many_bytes_is_refused(tmp_path, monkeypatch):
    from orrery.data.pictures import files

    (tmp_path / "a.png").write_bytes(b"1" * 11)
    monkeypatch.setattr(files, "MOST_BYTES", 10)
    with pytest.raises(DataError, match="more than 10 bytes"):
        read_file(tmp_path / "a.png")


@pytest.mark.parametrize("kind", ["CLIP", "Yolos"])
@pytest.mark.parametrize("shape", [(1, 20_000), (20_000, 1)], ids=str)
def test_a_thin_picture_that_would_fill_the_memory_is_refused(kind, shape):
    import torch

    with pytest.raises(DataError, match="would become one of"):
        preparation({"image_processor_type": f"{kind}ImageProcessor"})(torch.zeros(3, *shape, dtype=torch.uint8))
