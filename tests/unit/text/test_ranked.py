"""Mistral's tekken.json is read as its own program reads it: neighbours of the lowest rank are merged first."""

import base64
import json
import random
from pathlib import Path
from typing import Any

import pytest
import regex

from orrery.errors import ModelFileError
from orrery.text.tokenizer import Tokenizer, load_tokenizer

PATTERN = r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
TEXT = "the cat sat on the mat, the dog's log; äöü 日本 🙂\n\n  x=12345 67 (a) the theatre  "
CONTROL = 30


def strings(seed: int) -> list[bytes]:
    """Return the bytes, and strings that two earlier ones make."""
    draw, found = random.Random(seed), [bytes([byte]) for byte in range(256)]
    draw.shuffle(found)
    words = [match.encode() for match in regex.findall(PATTERN, TEXT)]
    while len(found) < 330:
        word = draw.choice(words)
        start = draw.randrange(len(word))
        piece = word[start : start + draw.randint(2, 5)]
        halves = any(piece[:cut] in found and piece[cut:] in found for cut in range(1, len(piece)))
        if piece not in found and halves:
            found.append(piece)
    return found


def content(seed: int, **changed: Any) -> dict[str, Any]:
    listed = strings(seed)
    vocabulary = [
        {"rank": rank, "token_bytes": base64.b64encode(one).decode(), "token_str": None}
        for rank, one in enumerate([*listed, b"behind the end"])
    ]
    config = {"pattern": PATTERN, "default_vocab_size": CONTROL + len(listed), "default_num_special_tokens": CONTROL}
    return {"config": {**config, **changed.pop("config", {})}, "vocab": vocabulary, **changed}


def saved(folder: Path, said: Any) -> Tokenizer:
    (folder / "tekken.json").write_text(said if isinstance(said, str) else json.dumps(said))
    return load_tokenizer(folder)


def merged(text: str, ranks: dict[bytes, int], pattern: str = PATTERN) -> list[int]:
    """Return the ranks of a text by the definition: whole words first, else the pair of the lowest rank, repeated."""
    ids: list[int] = []
    for match in regex.findall(pattern, text):
        word = match.encode()
        parts = [word] if word in ranks else [bytes([byte]) for byte in word]
        while len(parts) > 1:
            best = min(range(len(parts) - 1), key=lambda place: ranks.get(parts[place] + parts[place + 1], 10**9))
            if parts[best] + parts[best + 1] not in ranks:
                break
            parts[best : best + 2] = [parts[best] + parts[best + 1]]
        ids += [ranks[part] for part in parts]
    return ids


@pytest.mark.parametrize("seed", range(4))
def test_texts_are_merged_by_rank(seed: int, tmp_path: Path) -> None:
    tokenizer = saved(tmp_path, content(seed))
    ranks = {one: rank for rank, one in enumerate(strings(seed))}
    draw = random.Random(seed)
    for text in (TEXT, *("".join(draw.choices(TEXT, k=30)) for _ in range(20))):
        assert tokenizer.encode(text) == [CONTROL + rank for rank in merged(text, ranks)]
        assert tokenizer.decode(tokenizer.encode(text)) == text
    assert tokenizer.size == CONTROL + len(ranks)


def test_control_tokens_stand_before_and_one_begins_a_text(tmp_path: Path) -> None:
    tokenizer = saved(tmp_path, content(0))
    assert tokenizer.frame("cat").ids == [1, *tokenizer.encode("cat")]
    assert tokenizer.encode("[INST]cat[/INST]", special=True) == [3, *tokenizer.encode("cat"), 4]
    assert tokenizer.id("<SPECIAL_25>") == 25
    assert (tokenizer.roles["start"], tokenizer.roles["end"]) == ("<s>", "</s>")
    own = [{"rank": 1, "token_str": "<s>", "is_control": True}, {"rank": 7, "token_str": "[MINE]", "is_control": True}]
    assert saved(tmp_path, content(0, special_tokens=own)).id("[MINE]") == 7


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ("{", "is not JSON"),
        ("[1]", "no JSON object"),
        ({}, "no pattern"),
        (content(0, config={"pattern": 3}), "no pattern"),
        (content(0, config={"default_vocab_size": 10**9}), "default_vocab_size"),
        (content(0, config={"default_vocab_size": 4000}), "fewer strings"),
        (content(0, config={"default_num_special_tokens": -1}), "default_num_special_tokens"),
        (content(0, config={"default_num_special_tokens": 3}), "control tokens behind"),
        (content(0, vocab=[{"rank": 0}] * 400), "string 0"),
        (content(0, vocab=[{"rank": rank, "token_bytes": "YQ=="} for rank in range(400)]), "lacks 255"),
        (content(0, special_tokens=[{"rank": "1"}]), "no list of ranks"),
        (content(0, special_tokens=[{"rank": 1, "token_str": "<s>"}, {"rank": 2, "token_str": "<s>"}]), "one spelling"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_damaged_files_are_refused(said: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match=message) as refused:
        saved(tmp_path, said)
    assert refused.value.hint


def test_a_string_that_would_take_forever_is_refused(tmp_path: Path) -> None:
    said = content(0)
    said["vocab"][-2]["token_bytes"] = base64.b64encode(b"a" * 100_000).decode()
    with pytest.raises(ModelFileError, match="too long"):
        saved(tmp_path, said)


def test_a_file_of_any_size_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "tekken.json").open("wb") as file:
        file.truncate(300 << 20)
    with pytest.raises(ModelFileError, match="larger than 256 MiB"):
        load_tokenizer(tmp_path)
