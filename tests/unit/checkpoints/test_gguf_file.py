"""The head of a GGUF file: what it says is read, and a file that lies is refused, quickly and in little memory."""

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
import torch

from bombs import refusals
from gguf_files import finish
from orrery.checkpoints.gguf_blocks import BY_NAME, FORMULAS, unpacked
from orrery.checkpoints.gguf_file import KINDS, PLAIN, GgufFile, parts_of
from orrery.errors import ModelFileError

TYPES = gguf.GGMLQuantizationType


def text(value: str | bytes) -> bytes:
    content = value.encode() if isinstance(value, str) else value
    return struct.pack("<Q", len(content)) + content


def fact(key: str, kind: int, value: bytes) -> bytes:
    return text(key) + struct.pack("<I", kind) + value


def many(kind: int, count: int, items: bytes) -> bytes:
    return struct.pack("<IQ", kind, count) + items


def place(name: str, shape: tuple[int, ...], kind: int = 0, offset: int = 0) -> bytes:
    return text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, offset)


def whole(
    facts: list[bytes], places: list[bytes], data: bytes = b"", version: int = 3, counts: tuple[int, int] | None = None
) -> bytes:
    tensors, keys = counts or (len(places), len(facts))
    head = b"GGUF" + struct.pack("<IQQ", version, tensors, keys) + b"".join(facts) + b"".join(places)
    return head + bytes(-len(head) % 32) + data


GOOD = whole(
    [fact("a", 4, struct.pack("<I", 7)), fact("b", 8, text("ä")), fact("c", 9, many(8, 2, text("x") + text("")))],
    [place("t", (4, 2)), place("u", (32,), 8, 32)],
    struct.pack("<8f", *range(8)) + struct.pack("<e", 0.5) + bytes(range(32)),
)


def opened(path: Path, content: bytes) -> GgufFile:
    path.write_bytes(content)
    return GgufFile(path)


def test_facts_and_tensors_are_as_they_were_written(tmp_path: Path) -> None:
    file = opened(tmp_path / "x.gguf", GOOD)
    assert file.facts == {"a": 7, "b": "ä", "c": ["x", ""]}
    assert file["t"].tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert unpacked(file["u"], file.entries["u"].kind).tolist() == [number / 2 for number in range(32)]
    assert (list(file), len(file)) == (["t", "u"], 2)


@pytest.mark.parametrize("version", [2, 3])
def test_every_type_of_a_fact_is_read(version: int, tmp_path: Path) -> None:
    values = {0: 200, 1: -100, 2: 60_000, 3: -30_000, 4: 4_000_000_000, 5: -5, 6: 0.5, 7: True, 10: 2**60, 11: -(2**60)}
    letters = "BbHhIif?  Qqd"
    values[12] = 1e300
    facts = [fact(f"one.{kind}", kind, struct.pack("<" + letters[kind], value)) for kind, value in values.items()]
    facts += [
        fact(f"all.{kind}", 9, many(kind, 2, struct.pack("<2" + letters[kind], value, value)))
        for kind, value in values.items()
    ]
    facts_read = opened(tmp_path / "x.gguf", whole(facts, [], version=version)).facts
    assert facts_read == {f"one.{k}": v for k, v in values.items()} | {f"all.{k}": [v, v] for k, v in values.items()}
    assert all(type(facts_read[f"all.{kind}"][0]) is type(value) for kind, value in values.items())


def test_what_the_package_writes_is_read(tmp_path: Path) -> None:
    writer = gguf.GGUFWriter(tmp_path / "x.gguf", "llama")
    writer.add_custom_alignment(64)
    writer.add_array("words", ["a", "日本"])
    writer.add_array("numbers", [1.5, 2.5])
    for name, dtype in (("f", np.float32), ("h", np.float16), ("i", np.int32)):
        writer.add_tensor(name, np.arange(12, dtype=dtype).reshape(3, 4))
    finish(writer)
    file = GgufFile(tmp_path / "x.gguf")
    assert (file.facts["words"], file.facts["numbers"]) == (["a", "日本"], [1.5, 2.5])
    for name in "fhi":
        assert file[name].tolist() == np.arange(12).reshape(3, 4).tolist()


def test_what_is_written_into_a_tensor_stays_in_this_process(tmp_path: Path) -> None:
    file = opened(tmp_path / "x.gguf", GOOD)
    file["t"].zero_()
    assert (tmp_path / "x.gguf").read_bytes() == GOOD
    assert GgufFile(tmp_path / "x.gguf")["t"].sum() == 28


def test_kinds_are_those_of_the_package() -> None:
    theirs = {kind.value: (kind.name, *size) for kind, size in gguf.GGML_QUANT_SIZES.items()}
    assert {number: (kind.name, kind.block, kind.size) for number, kind in KINDS.items()} == theirs


@pytest.mark.parametrize("name", [name for name in BY_NAME if name not in PLAIN])
def test_every_kind_is_unpacked_bit_for_bit_as_by_the_package(name: str) -> None:
    """Random bytes are blocks too: also those whose scale is infinite or no number."""
    kind = BY_NAME[name]
    bytes_ = np.random.default_rng(0).integers(0, 256, (3, 5, 4 * kind.size), dtype=np.uint8)
    if TYPES[name] not in gguf.quants._type_traits:
        with pytest.raises(ModelFileError, match=f"nothing here unpacks {name}"):
            unpacked(torch.from_numpy(bytes_), kind)
        return
    with np.errstate(all="ignore"):
        theirs = gguf.dequantize(bytes_, TYPES[name])
        ours = unpacked(torch.from_numpy(bytes_), kind).numpy()
    assert np.array_equal(ours, theirs, equal_nan=True)
    assert np.isfinite(ours).sum() > 1000


@pytest.mark.parametrize("name", FORMULAS)
def test_blocks_are_unpacked_a_part_at_a_time(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kind = BY_NAME[name]
    stored = torch.randint(0, 256, (7, 3 * kind.size), dtype=torch.uint8, generator=torch.Generator().manual_seed(1))
    expected = unpacked(stored, kind)
    monkeypatch.setattr("orrery.checkpoints.gguf_blocks.AT_ONCE", 4 * kind.block)
    assert torch.equal(unpacked(stored, kind).nan_to_num(), expected.nan_to_num())


DAMAGED: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "cut short"),
    "another format": (b"PK\3\4" + bytes(100), "does not begin with GGUF"),
    "a pointer": (b"version https://git-lfs.github.com/spec/v1\noid sha256:" + bytes(90), "pointer of git-lfs"),
    "a page": (b"<!DOCTYPE html>" + bytes(100), "page of the web"),
    "an older format": (b"tjgg" + bytes(100), "format before GGUF"),
    "turned around": (b"FUGG" + bytes(100), "big-endian"),
    "big-endian": (b"GGUF" + struct.pack(">IQQ", 3, 0, 0) + bytes(64), "big-endian"),
    "version 1": (whole([], [], version=1), "version 1"),
    "version 99": (whole([], [], version=99), "version 99"),
    "many tensors": (whole([], [], counts=(2**63, 0)), "tensors"),
    "many facts": (whole([], [], counts=(0, 2**63)), "facts"),
    "more tensors than there are": (whole([], [place("t", (1,))], bytes(4), counts=(2, 0)), "cut short"),
    "more facts than there are": (whole([fact("a", 7, b"\1")], [], counts=(0, 2)), "without a key"),
    "a key of all memory": (whole([struct.pack("<Q", 2**62)], []), "a text of"),
    "a key behind the end": (whole([struct.pack("<Q", 10_000)], []), "cut short"),
    "a key that is no text": (whole([text(b"\xff\xfe") + bytes(5)], []), "not UTF-8"),
    "a key twice": (whole([fact("a", 7, b"\1")] * 2, []), "twice"),
    "an unknown type": (whole([fact("a", 13, bytes(8))], []), "unknown type 13"),
    "a text of all memory": (whole([fact("a", 8, struct.pack("<Q", 2**63))], []), "a text of"),
    "a text of 20 MB": (whole([fact("a", 8, text(bytes(20_000_000)))], []), "a text of 20,000,000"),
    "a text that is none": (whole([fact("a", 8, text(b"\x80"))], []), "not UTF-8"),
    "a list of all memory": (whole([fact("a", 9, many(4, 2**60, b""))], []), "items"),
    "a list behind the end": (whole([fact("a", 9, many(12, 7_000_000, b""))], []), "cut short"),
    "texts behind the end": (whole([fact("a", 9, many(8, 7_000_000, b""))], []), "cut short"),
    "many empty texts": (whole([fact("a", 9, many(8, 9_000_000, bytes(72_000_000)))], []), "items"),
    "many lists": (whole([fact(f"a{i}", 9, many(0, 2_000_000, bytes(2_000_000))) for i in range(5)], []), "items"),
    "a list of unknown types": (whole([fact("a", 9, many(99, 3, bytes(99)))], []), "unknown type 99"),
    "lists within lists": (whole([fact("a", 9, many(9, 1, b"") * 50)], []), "lists within each other"),
    "a million lists within lists": (whole([fact("a", 9, many(9, 1, b"") * 1_000_000)], []), "lists within each other"),
    "a fact cut short": (GOOD[:40], "cut short"),
    "a place cut short": (GOOD[:110], "cut short"),
    "a tensor twice": (whole([], [place("t", (1,)), place("t", (1,), 0, 32)], bytes(64)), "a tensor twice"),
    "no axes": (whole([], [place("t", ())], bytes(4)), "0 axes"),
    "nine axes": (whole([], [place("t", (1,) * 9)], bytes(4)), "9 axes"),
    "axes without end": (whole([], [text("t") + struct.pack("<I", 2**32 - 1)]), "axes"),
    "a size of all memory": (whole([], [place("t", (2**62, 2**62))], bytes(64)), "cut short"),
    "an unknown kind": (whole([], [place("t", (32,), 4)], bytes(64)), "unknown kind 4"),
    "rows of half a block": (whole([], [place("t", (48,), 8)], bytes(64)), "in blocks of 32"),
    "an odd offset": (whole([], [place("t", (1,), 0, 3)], bytes(64)), "no multiple of 32"),
    "an offset behind the end": (whole([], [place("t", (1,), 0, 2**40)], bytes(64)), "cut short"),
    "an offset of all memory": (whole([], [place("t", (1,), 0, 2**64 - 32)], bytes(64)), "cut short"),
    "tensors cut short": (GOOD[:-1], "ends 1 bytes behind"),
    "tensors over each other": (
        whole([], [place("t", (16,)), place("u", (16,), 0, 32)], bytes(128)),
        "over each other",
    ),
    "alignment zero": (whole([fact("general.alignment", 4, bytes(4))], []), "alignment"),
    "alignment three": (whole([fact("general.alignment", 4, struct.pack("<I", 24))], []), "alignment"),
    "alignment without end": (whole([fact("general.alignment", 4, struct.pack("<I", 2**31))], []), "alignment"),
    "alignment in words": (whole([fact("general.alignment", 8, text("32"))], []), "alignment"),
    "random bytes": (b"GGUF" + np.random.default_rng(3).bytes(5000), "version"),
    "a good head and random bytes": (GOOD[:24] + np.random.default_rng(4).bytes(5000), "text of"),
}


def test_damaged_files_are_refused_quickly_and_in_little_memory(tmp_path: Path) -> None:
    files = [tmp_path / f"{number}.gguf" for number in range(len(DAMAGED))]
    for file, (content, _) in zip(files, DAMAGED.values(), strict=True):
        file.write_bytes(content)
    refused = refusals("from orrery.checkpoints.gguf_file import GgufFile", "GgufFile(path)", files)
    for (name, (_, words)), file, (kind, message) in zip(DAMAGED.items(), files, refused, strict=True):
        assert kind == "ModelFileError", (name, kind, message)
        assert str(file) in message, name
        assert any(part in message for part in words.split("|")), (name, message)
        assert "(hint: " in message, name


def test_a_file_cut_anywhere_is_refused(tmp_path: Path) -> None:
    for length in range(len(GOOD)):
        with pytest.raises(ModelFileError):
            opened(tmp_path / "x.gguf", GOOD[:length])


def test_a_byte_that_changed_anywhere_ends_in_nothing_else_than_a_refusal(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for _ in range(600):
        content = bytearray(GOOD)
        content[int(rng.integers(len(GOOD)))] = int(rng.integers(256))
        try:
            file = opened(tmp_path / "x.gguf", bytes(content))
        except ModelFileError:
            continue
        for name in file:
            assert file[name].numel() < 1000


def folder(path: Path) -> Path:
    path.mkdir()
    return path


MISSING: dict[str, tuple[Callable[[Path], Path], str]] = {
    "nothing": (lambda path: path, "is missing"),
    "a folder": (folder, "no regular file"),
}


@pytest.mark.parametrize("case", MISSING)
def test_what_is_no_file_is_told(case: str, tmp_path: Path) -> None:
    make, words = MISSING[case]
    with pytest.raises(ModelFileError, match=words):
        GgufFile(make(tmp_path / "x.gguf"))


def test_the_parts_of_a_split_model_are_found_from_any_of_them(tmp_path: Path) -> None:
    names = [f"m-{number:05}-of-00003.gguf" for number in (1, 2, 3)]
    for name in names:
        (tmp_path / name).touch()
    expected: Any = [tmp_path / name for name in names]
    assert all(parts_of(tmp_path / name) == expected for name in names)
    assert parts_of(tmp_path / "m.gguf") == [tmp_path / "m.gguf"]
    (tmp_path / names[1]).unlink()
    with pytest.raises(ModelFileError, match=r"lacks 1 of 3 files of this model: m-00002-of-00003\.gguf"):
        parts_of(tmp_path / names[0])
