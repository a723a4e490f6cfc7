"""PNG files against the definition of the format: every filter, every kind of colour, and what is refused."""

import struct
import zlib

import numpy as np
import pytest
import torch

from orrery.data.pictures.png import SIGNATURE, read_png, write_png
from orrery.errors import DataError

CHANNELS = {0: 1, 2: 3, 4: 2, 6: 4}


def chunk(kind, content):
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def filtered(pixels, kind):
    """Filter each line as the standard says (section 9.2), byte by byte."""
    rows, columns, channels = pixels.shape
    lines = pixels.reshape(rows, columns * channels).astype(int)
    made = b""
    for row in range(rows):
        line = []
        for at in range(columns * channels):
            a = lines[row, at - channels] if at >= channels else 0
            b = lines[row - 1, at] if row else 0
            c = lines[row - 1, at - channels] if row and at >= channels else 0
            near = sorted(((abs(b - c), 0, a), (abs(a - c), 1, b), (abs(a + b - 2 * c), 2, c)))[0][2]
            line.append((lines[row, at] - (0, a, b, (a + b) // 2, near)[kind]) % 256)
        made += bytes([kind, *line])
    return made


def written(pixels, colour, kind=0, raw=b"", **head):
    rows, columns, _ = pixels.shape
    said = {"columns": columns, "rows": rows, "bits": 8, "colour": colour, "interlaced": 0, **head}
    packed = struct.pack(
        ">IIBBBBB", said["columns"], said["rows"], said["bits"], said["colour"], 0, 0, said["interlaced"]
    )
    raw = raw or zlib.compress(filtered(pixels, kind))
    parts = chunk(b"IHDR", packed) + chunk(b"tEXt", b"Title\0x") + chunk(b"IDAT", raw[:9]) + chunk(b"IDAT", raw[9:])
    return SIGNATURE + parts + chunk(b"IEND", b"")


def drawn(colour, rows=5, columns=7):
    return np.random.default_rng(colour).integers(0, 256, (rows, columns, CHANNELS[colour]), dtype=np.uint8)


@pytest.mark.parametrize("kind", range(5))
@pytest.mark.parametrize("colour", [0, 2])
def test_every_filter_is_undone(colour, kind):
    pixels = drawn(colour)
    assert torch.equal(read_png(written(pixels, colour, kind)), torch.from_numpy(pixels).permute(2, 0, 1))


@pytest.mark.parametrize("shape", [(1, 1), (1, 9), (9, 1), (6, 7), (7, 6), (20, 3)], ids=str)
def test_lines_may_each_have_a_filter_of_their_own(shape):
    pixels, rng = drawn(2, *shape), np.random.default_rng(sum(shape))
    for _ in range(3):
        kinds = rng.integers(0, 5, shape[0]).tolist()
        size = 1 + shape[1] * 3
        lines = [filtered(pixels, kind)[row * size : (row + 1) * size] for row, kind in enumerate(kinds)]
        content = written(pixels, 2, raw=zlib.compress(b"".join(lines)))
        assert torch.equal(read_png(content), torch.from_numpy(pixels).permute(2, 0, 1)), kinds


def test_a_line_of_a_million_pixels_is_not_guessed_one_by_one():
    line = zlib.compress(bytes([4]) + bytes(3 << 20))
    with pytest.raises(DataError, match="has sides of 1 and 1,048,576 pixels"):
        read_png(written(drawn(2), 2, raw=line, rows=1, columns=1 << 20))
    plain = zlib.compress(bytes([1]) + bytes(3 << 20))
    assert read_png(written(drawn(2), 2, raw=plain, rows=1, columns=1 << 20)).shape == (3, 1, 1 << 20)


@pytest.mark.parametrize("colour", [4, 6])
def test_what_is_transparent_shows_white(colour):
    pixels = drawn(colour)
    pixels[0, 0, -1], pixels[0, 1, -1] = 0, 255
    pixels_read = read_png(written(pixels, colour, 4))
    assert (pixels_read[:, 0, 0] == 255).all()
    assert pixels_read[:, 0, 1].tolist() == pixels[0, 1, :-1].tolist()
    share = pixels[..., -1:] / 255
    expected = (share * pixels[..., :-1] + (1 - share) * 255).round()
    assert torch.equal(pixels_read, torch.from_numpy(expected).permute(2, 0, 1).to(torch.uint8))


@pytest.mark.parametrize("colour", [0, 2])
def test_what_is_written_is_read(colour):
    pixels = torch.from_numpy(drawn(colour)).permute(2, 0, 1)
    assert torch.equal(read_png(write_png(pixels)), pixels)


GOOD = written(drawn(2), 2)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"\xff\xd8\xff\xe0" + bytes(20), "is no PNG"),
        (GOOD[:-30], "is broken"),
        (GOOD[:50] + b"!" + GOOD[51:], "is broken"),
        (SIGNATURE, "is broken"),
        (written(drawn(2), 2, interlaced=1), "interlaced"),
        (written(drawn(2), 2, bits=16), "depth"),
        (written(drawn(2), 3), "palette"),
        (written(drawn(2), 2, rows=6), "ends too early"),
        (written(drawn(2), 2, rows=1 << 20, columns=1 << 20), "1,048,576 rows"),
        (written(drawn(2), 2, rows=0), "0 rows"),
    ],
)
def test_what_cannot_be_read_is_refused(content, says):
    with pytest.raises(DataError, match=says) as error:
        read_png(content, "cat.png")
    assert error.value.message.startswith("cat.png")
