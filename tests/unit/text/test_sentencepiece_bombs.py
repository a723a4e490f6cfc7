"""SentencePiece files of kilobytes that would become gigabytes, or never end: refused as they are read, by the rule."""

import struct
import time
from pathlib import Path

import numpy as np
import pytest

import bombs
from orrery.errors import ModelFileError
from orrery.text import load_tokenizer
from orrery.text.sentencepiece import charsmap
from unit.text.test_sentencepiece import field, model, trie


def cycle(labels: int, blocks: int = 1) -> bytes:
    """Return rules whose trie comes back to its first block behind so many: ways through it have no end."""
    units = np.zeros(256 * (blocks + 1), "<u4")
    units[0] = 256 << 10
    for block in range(1, blocks + 1):
        behind = 256 * (1 + block % blocks)
        for label in range(1, labels + 1):
            at = 256 * block ^ label
            units[at] = (at ^ behind) << 10 | 1 << 8 | label
    return struct.pack("<I", units.nbytes) + units.tobytes() + b"a\0"


def shared(levels: int) -> bytes:
    """Return rules whose keys share all their ends: 127 ways at each of some levels."""
    units = np.zeros(256 * (levels + 2), "<u4")
    units[0] = 256 << 10
    for level in range(1, levels + 1):
        for label in range(1, 128):
            at = 256 * level ^ label
            units[at] = (at ^ 256 * (level + 1)) << 10 | 1 << 8 | label
    return struct.pack("<I", units.nbytes) + units.tobytes() + b"a" * 200 + b"\0"


BOMBS = {
    "a long replacement": lambda: rules(trie({"a": "b" * 1_000_000})),
    "one of a few hundred": lambda: rules(trie({"a": "b" * 300})),
    "a replacement in every rule": lambda: rules(trie({a: "b" * 100_000 for a in "abcdefghij"})),
    "a way without an end": lambda: rules(cycle(1)),
    "many ways without an end": lambda: rules(cycle(127)),
    "ways through many blocks": lambda: rules(cycle(2, 40)),
    "more ways than rules": lambda: rules(shared(4)),
    "three levels": lambda: rules(shared(3)),
    "a trie that is longer than the file": lambda: rules(struct.pack("<I", 1 << 30) + bytes(64)),
    "a trie of no whole units": lambda: rules(struct.pack("<I", 7) + bytes(64)),
    "empty fields": lambda: b"\x08\x00" * 4_000_000,
    "empty pieces": lambda: b"\x0a\x00" * 4_000_000,
    "a piece that is longer than the file": lambda: b"\x0a\xff\xff\xff\xff\x07" + model(),
}


def rules(content: bytes) -> bytes:
    """Return a file with these normalisation rules."""
    return model(normal=[(2, content)])


@pytest.mark.parametrize("name", BOMBS)
def test_a_file_that_takes_all_memory_or_time_is_refused_as_it_is_read(name: str, tmp_path: Path) -> None:
    (tmp_path / "a.model").write_bytes(BOMBS[name]())
    began = time.process_time()
    with pytest.raises(ModelFileError):
        load_tokenizer(tmp_path / "a.model")
    assert time.process_time() - began < 5


@pytest.mark.slow
def test_all_of_them_take_no_gigabyte(tmp_path: Path) -> None:
    files = [tmp_path / f"{number}.model" for number in range(len(BOMBS))]
    for file, bomb in zip(files, BOMBS.values(), strict=True):
        file.write_bytes(bomb())
    refused = bombs.refusals("from orrery.text import load_tokenizer", "load_tokenizer(path)", files)
    assert {kind for kind, _ in refused} == {"ModelFileError"}


def test_rules_within_the_bounds_are_read() -> None:
    mapped = {"a": "b" * charsmap.LONGEST_REPLACEMENT, "ab": "c", "b": "b" * 33}
    assert charsmap.rules(trie(mapped)) == mapped
    assert charsmap.longest_replacement(trie(mapped)) == charsmap.LONGEST_REPLACEMENT
    assert field(1, b"a") == b"\x0a\x01a"
