"""Picture files made to break a reader: cut short, damaged, beyond any memory, of kinds that start programs."""

import io
import struct
import zlib
from pathlib import Path

import numpy as np
from PIL import Image

from orrery.data.pictures.png import SIGNATURE

SIDE = 1 << 13
"""Rows and columns of the largest picture that is read."""
SMALL = Image.fromarray(np.random.default_rng(0).integers(0, 256, (40, 60, 3), dtype=np.uint8))
READ = ("most", "one", "long", "tall", "frames", "orientation", "profile", "comment", "sixteen", "palette")
"""How the names of those begin that are pictures after all: large or odd, and read in time."""


def chunk(kind: bytes, part: bytes) -> bytes:
    return struct.pack(">I", len(part)) + kind + part + struct.pack(">I", zlib.crc32(kind + part))


def png(columns: int, rows: int, bits: int = 8, colour: int = 2, data: bytes = b"", more: bytes = b"") -> bytes:
    """Return a PNG file with a head that may lie."""
    head = struct.pack(">IIBBBBB", columns, rows, bits, colour, 0, 0, 0)
    return SIGNATURE + chunk(b"IHDR", head) + more + chunk(b"IDAT", data) + chunk(b"IEND", b"")


def zeros(count: int) -> bytes:
    """Return so many zero bytes, deflated: blocks that stand alone are all alike, so one is made and repeated."""
    packer, block = zlib.compressobj(9, wbits=-15), bytes(1 << 20)
    whole = packer.compress(block) + packer.flush(zlib.Z_FULL_FLUSH)
    rest = packer.compress(bytes(count % len(block))) + packer.flush()
    total = struct.pack(">HH", count % 65521, 1)  # Adler-32
    return b"\x78\xda" + whole * (count // len(block)) + rest + total


def saved(image: Image.Image, kind: str, **settings: object) -> bytes:
    out = io.BytesIO()
    image.save(out, kind, **settings)
    return out.getvalue()


def cut() -> dict[str, bytes]:
    """Return files that end too early, or of which a part was changed."""
    whole = {
        "png": saved(SMALL, "PNG"), "jpg": saved(SMALL, "JPEG"), "webp": saved(SMALL, "WEBP"),
        "gif": saved(SMALL, "GIF"), "bmp": saved(SMALL, "BMP"),
    }  # fmt: skip
    found = {f"half.{kind}": content[: len(content) // 2] for kind, content in whole.items()}
    found |= {f"head.{kind}": content[:12] for kind, content in whole.items()}
    noise = np.random.default_rng(1).bytes(500)
    found |= {f"noise.{kind}": content[:8] + noise for kind, content in whole.items()}
    broken = bytearray(whole["png"])
    broken[60] ^= 255
    return {**found, "sum.png": bytes(broken)}


def beyond() -> dict[str, bytes]:
    """Return files of a few bytes whose heads tell of more pixels than any memory holds."""
    jpeg = bytearray(saved(SMALL, "JPEG"))
    at = jpeg.index(b"\xff\xc0") + 5
    jpeg[at : at + 4] = struct.pack(">HH", 65500, 65500)
    gif = saved(SMALL, "GIF")
    bmp = bytearray(saved(SMALL, "BMP"))
    bmp[18:26] = struct.pack("<ii", 1 << 30, -(1 << 30))
    canvas = (16382).to_bytes(3, "little") * 2
    webp = b"RIFF" + struct.pack("<I", 22) + b"WEBPVP8X" + struct.pack("<I", 10) + bytes(4) + canvas
    return {
        "huge.png": png((1 << 31) - 1, (1 << 31) - 1, data=zeros(1000)),
        "many.png": png(20_000, 20_000, data=zeros(1 << 26)),
        "none.png": png(0, 7, data=zeros(10)),
        "huge.jpg": bytes(jpeg),
        "huge.gif": gif[:6] + struct.pack("<HH", 65535, 65535) + gif[10:],
        "huge.bmp": bytes(bmp),
        "huge.webp": webp,
        "few.png": png(300, 300, data=zeros(1000)),
        "palette.png": png(300, 300, colour=3, data=zeros(301 * 300)),
        "depth.png": png(30, 30, bits=3, data=zeros(10_000)),
        "text.png": png(9, 9, data=zeros(28 * 9), more=chunk(b"zTXt", b"a\0\0" + zeros(1 << 28))),
    }


def others() -> dict[str, bytes]:
    """Return files that are no pictures of a kind that is read."""
    return {
        "empty.png": b"",
        "words.jpg": b"hello",
        "drawing.svg": b"<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'/>",
        "page.eps": b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n",
        "scan.tiff": saved(SMALL, "TIFF"),
        "icon.ico": saved(SMALL, "ICO"),
    }


def odd() -> dict[str, bytes]:
    """Return pictures after all: as large as may be, very thin, or with odd things around them."""
    exif, turned = Image.Exif(), Image.Exif()
    exif[0x0112], turned[0x0112] = 99, 6
    return {
        "most.png": png(SIDE, SIDE, 16, 6, zeros((1 + SIDE * 8) * SIDE)),
        "most.jpg": saved(Image.new("RGB", (SIDE, SIDE)), "JPEG", exif=turned),
        "one.png": saved(SMALL.resize((1, 1)), "PNG"),
        "long.png": saved(SMALL.resize((20_000, 1)), "PNG"),
        "tall.png": saved(SMALL.resize((1, 20_000)), "PNG"),
        "frames.gif": saved(SMALL, "GIF", save_all=True, append_images=[SMALL.rotate(n) for n in range(200)]),
        "orientation.jpg": saved(SMALL, "JPEG", exif=exif),
        "profile.jpg": saved(SMALL, "JPEG", icc_profile=b"no profile" * 9),
        "comment.jpg": saved(SMALL, "JPEG", comment=b"c" * 60_000),
        "sixteen.png": saved(Image.fromarray(np.arange(2400, dtype=np.uint16).reshape(40, 60) * 27), "PNG"),
    }


def written(folder: Path) -> list[Path]:
    """Write all of them into a folder."""
    for name, content in {**cut(), **beyond(), **others(), **odd()}.items():
        (folder / name).write_bytes(content)
    return sorted(folder.iterdir())
