"""Picture files of every kind as pixels, and what is no picture."""

import io
import struct
import zlib

import numpy as np
import pytest
import torch

from orrery.data.pictures import files
from orrery.data.pictures.files import read_pixels
from orrery.data.pictures.png import SIGNATURE, write_png
from orrery.errors import DataError

Image = pytest.importorskip("PIL.Image", reason="Pillow, of the extra vision, is not installed")
RNG = np.random.default_rng(0)
COLOURS = Image.fromarray(RNG.integers(0, 256, (9, 14, 3), dtype=np.uint8))


def content_of(image, kind, **settings):
    out = io.BytesIO()
    image.save(out, kind, **settings)
    return out.getvalue()


def as_pixels(image):
    array = np.array(image)
    return torch.from_numpy(array[None] if array.ndim == 2 else array.transpose(2, 0, 1).copy())


@pytest.mark.parametrize(
    ("kind", "settings"),
    [("PNG", {}), ("PNG", {"interlace": 1}), ("JPEG", {"quality": 70}), ("WEBP", {"lossless": True}), ("GIF", {}),
     ("BMP", {})],
)  # fmt: skip
def test_files_of_every_kind_are_what_pillow_reads(kind, settings):
    content = content_of(COLOURS, kind, **settings)
    assert torch.equal(read_pixels(content), as_pixels(Image.open(io.BytesIO(content)).convert("RGB")))


@pytest.mark.parametrize("mode", ["L", "1"])
def test_grey_stays_one_channel(mode):
    image = COLOURS.convert(mode)
    assert torch.equal(read_pixels(content_of(image, "PNG")), as_pixels(image.convert("L")))


@pytest.mark.parametrize("mode", ["P", "CMYK"])
def test_palettes_and_printing_colours_become_colours(mode):
    image = COLOURS.convert(mode)
    kind = "PNG" if mode == "P" else "JPEG"
    content = content_of(image, kind)
    assert torch.equal(read_pixels(content), as_pixels(Image.open(io.BytesIO(content)).convert("RGB")))


def test_what_is_transparent_shows_white():
    image = COLOURS.copy()
    image.putalpha(0)
    assert (read_pixels(content_of(image, "PNG")) == 255).all()
    grey = COLOURS.convert("L")
    grey.putalpha(0)
    assert read_pixels(content_of(grey, "PNG")).shape == (1, 9, 14)
    palette = COLOURS.convert("P")
    see_through = content_of(palette, "PNG", transparency=palette.getpixel((0, 0)))
    assert (read_pixels(see_through)[:, 0, 0] == 255).all()


def test_sixteen_bits_become_the_nearest_of_eight():
    values = RNG.integers(0, 65536, (5, 6), dtype=np.uint16)
    found = read_pixels(content_of(Image.fromarray(values), "PNG"))
    assert torch.equal(found[0], torch.from_numpy((values / 257).round().astype(np.uint8)))


@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_photograph_is_turned_as_the_camera_was_held(orientation):
    exif = Image.Exif()
    exif[0x0112] = orientation
    content = content_of(COLOURS, "PNG", exif=exif)
    upright = as_pixels(COLOURS)
    turned = {
        1: upright, 2: upright.flip(2), 3: upright.flip(1, 2), 4: upright.flip(1), 5: upright.mT,
        6: upright.rot90(-1, (1, 2)), 7: upright.mT.flip(1, 2), 8: upright.rot90(1, (1, 2)),
    }[orientation]  # fmt: skip
    assert torch.equal(read_pixels(content), turned)


def test_of_several_frames_the_first_is_taken():
    other = Image.new("RGB", (14, 9), (1, 2, 3))
    content = content_of(COLOURS, "GIF", save_all=True, append_images=[other])
    assert torch.equal(read_pixels(content), as_pixels(Image.open(io.BytesIO(content)).convert("RGB")))


def png_head(columns, rows):
    head = struct.pack(">IIBBBBB", columns, rows, 8, 2, 0, 0, 0)
    data = zlib.compress(b"\0" * 1000)
    parts = ((b"IHDR", head), (b"IDAT", data), (b"IEND", b""))
    return SIGNATURE + b"".join(
        struct.pack(">I", len(part)) + kind + part + struct.pack(">I", zlib.crc32(kind + part)) for kind, part in parts
    )


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "no picture file"),
        (b"hello", "no picture file"),
        (b"%PDF-1.4 and more", "no picture file .* a PDF document"),
        (b"\0\0\0\x18ftypheic\0\0\0\0mif1heic", "but a HEIC picture"),
        (b"II*\0\x08\0\0\0", "but a TIFF picture"),
        (b"version https://git-lfs.github.com/spec/v1\noid", "git lfs pull"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "but an SVG drawing"),
        (SIGNATURE, "is broken"),
        (b"\xff\xd8\xff\xe0", "is broken"),
        (b"RIFF\x00\x00\x00\x00WEBP", "is broken"),
        (content_of(COLOURS, "PNG")[:-30], "is broken"),
        (content_of(COLOURS.resize((300, 300)), "JPEG")[:600], "is broken"),
        (content_of(COLOURS, "WEBP")[:40], "is broken"),
        (png_head(20_000, 20_000), "more than 67,108,864 pixels"),
        (png_head(1 << 30, 1), "pixels"),
        (png_head(0, 5), "is broken|pixels"),
        (png_head(30, 30), "is broken"),
    ],
)
def test_what_is_no_picture_is_refused_by_name(content, says):
    with pytest.raises(DataError, match=says):
        read_pixels(content, "x.png")


def test_a_long_thin_picture_is_read():
    assert read_pixels(content_of(Image.new("L", (20_000, 1)), "PNG")).shape == (1, 1, 20_000)


def test_without_pillow_png_is_read_and_others_say_what_is_missing(monkeypatch):
    monkeypatch.setattr(files, "pillow", lambda: None)
    pixels = torch.from_numpy(RNG.integers(0, 256, (3, 4, 5), dtype=np.uint8))
    assert torch.equal(read_pixels(write_png(pixels)), pixels)
    with pytest.raises(DataError, match="only those are read without Pillow") as error:
        read_pixels(content_of(COLOURS, "JPEG"))
    assert "orrery-lm[vision]" in str(error.value.hint)
