"""Tokenizers whose rules double a text or whose patterns never end: refused as they are read, by the rule."""

import base64
import json
import struct
import time
from pathlib import Path
from typing import Any

import pytest
import tokenizers

import bombs
from orrery.errors import ModelFileError
from orrery.text import bounds, engine
from orrery.text.tokenizer import Tokenizer

VOCABULARY = {letter: id for id, letter in enumerate("abcdefghijklmnopqrstuvwxyz <>")}
BASE: dict[str, Any] = {
    "version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None,
    "pre_tokenizer": None, "post_processor": None, "decoder": None,
    "model": {"type": "BPE", "vocab": VOCABULARY, "merges": [], "unk_token": "<"},
}  # fmt: skip


def replacing(pattern: str, put: str, kind: str = "String") -> dict[str, Any]:
    return {"type": "Replace", "pattern": {kind: pattern}, "content": put}


def parting(regex: str) -> dict[str, Any]:
    return {"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": False}


def sequence(rules: list[Any], name: str = "normalizers") -> dict[str, Any]:
    return {"type": "Sequence", name: rules}


def template(single: list[Any], special: dict[str, Any] | None = None) -> dict[str, Any]:
    text = {"Sequence": {"id": "A", "type_id": 0}}
    return {"type": "TemplateProcessing", "single": single, "pair": [text], "special_tokens": special or {}}


def precompiled(*replacements: bytes) -> dict[str, Any]:
    """Return rules of SentencePiece with an empty trie and these texts behind it."""
    content = struct.pack("<I", 1024) + bytes(1024) + b"\0".join([*replacements, b""])
    return {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(content).decode()}


BYTES = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
CHINESE = {"type": "BertNormalizer", "clean_text": False, "handle_chinese_chars": True, "strip_accents": False,
           "lowercase": False}  # fmt: skip
PIECES = {"type": "WordPiece", "vocab": VOCABULARY, "unk_token": "<", "max_input_chars_per_word": 1000}
TEXT = {"Sequence": {"id": "A", "type_id": 0}}
ADDED = [{"id": 29, "content": "aaaa", "single_word": False, "lstrip": False, "rstrip": False, "normalized": True,
          "special": False}]  # fmt: skip
BOMBS: dict[str, dict[str, Any]] = {
    "doubling": {"normalizer": sequence([replacing("a", "aa")] * 40)},
    "doubling an added token": {"normalizer": sequence([replacing("a", "aa")] * 40), "added_tokens": ADDED},
    "doubling by a pattern": {"normalizer": sequence([replacing("a", "aa", "Regex")] * 40)},
    "a hundredfold": {"normalizer": sequence([replacing(" ", " " * 100)] * 2)},
    "nested": {"normalizer": sequence([sequence([replacing("a", "aaa")] * 3)] * 3)},
    "a long replacement": {"normalizer": replacing("a", "b" * 20_000)},
    "a long beginning": {"normalizer": {"type": "Prepend", "prepend": "b" * 20_000}},
    "doubling when read back": {"decoder": sequence([replacing("a", "aa")] * 40, "decoders")},
    "a text a thousand times": {"post_processor": template([TEXT] * 1000)},
    "a text twice": {"post_processor": template([TEXT] * 2)},
    "many tokens": {"post_processor": template(
        [TEXT, *[{"SpecialToken": {"id": "b", "type_id": 0}}] * 2000],
        {"b": {"id": "b", "ids": [1], "tokens": ["b"]}})},
    "a token of many": {"post_processor": template(
        [TEXT, {"SpecialToken": {"id": "b", "type_id": 0}}],
        {"b": {"id": "b", "ids": [1] * 5000, "tokens": ["b"] * 5000}})},
    "words without bounds": {"model": {
        "type": "WordPiece", "vocab": VOCABULARY, "unk_token": "<", "continuing_subword_prefix": "##",
        "max_input_chars_per_word": 10**9}},
    "letters of letters of bytes": {"normalizer": sequence([{"type": "ByteLevel"}] * 40)},
    "parts of letters of bytes": {"pre_tokenizer": sequence([BYTES] * 40, "pretokenizers")},
    "letters of bytes that are parted": {
        "normalizer": sequence([{"type": "ByteLevel"}] * 4), "pre_tokenizer": sequence([BYTES] * 4, "pretokenizers")},
    "spaces around spaces": {"normalizer": sequence([CHINESE] * 5000)},
    "many beginnings": {"normalizer": sequence([{"type": "Prepend", "prepend": "b" * 9000}] * 1000)},
    "many parts": {"pre_tokenizer": sequence([{"type": "Digits", "individual_digits": True}] * 5000, "pretokenizers")},
    "a long prefix": {"model": {**BASE["model"], "continuing_subword_prefix": "a" * 1_000_000}},
    "a long end": {"model": {**BASE["model"], "end_of_word_suffix": "a" * 1_000_000}},
    "a long prefix of pieces": {"model": {**PIECES, "continuing_subword_prefix": "#" * 1_000_000}},
    "a compiled rule that puts much in": {"normalizer": precompiled(b"a" * 1_000_000)},
    "a compiled rule after a doubling": {"normalizer": sequence([precompiled(b"a" * 200), replacing("a", "aa")])},
    "a long pattern": {"pre_tokenizer": parting("a|" * 15_000 + "b")},
    **{f"pattern {regex}": {"pre_tokenizer": parting(regex)} for regex in (
        "(a+)+b", "([a-z]+)*\\d", "(x+x+)+y", "(a|aa)+$", "(\\w+\\s?)+z$", "(q+)+r", "((ab)+)+c", "(a|b|ab)+c",
        "(a?b?c?)*d", "(\\w+)*=", "(\\p{L}+)*:", "a*a*a*a*a*b",
    )},
    "a pattern that replaces": {"normalizer": replacing("(a+)+b", "c", "Regex")},
    "a pattern in a sequence": {"pre_tokenizer": sequence([parting(" "), parting("(a+)+b")], "pretokenizers")},
    "a pattern that is none": {"pre_tokenizer": parting("(" * 5000)},
}  # fmt: skip


@pytest.mark.parametrize("name", BOMBS)
def test_a_tokenizer_that_takes_all_memory_or_time_is_refused_as_it_is_read(name: str) -> None:
    began = time.process_time()
    with pytest.raises(ModelFileError, match=r"^tokenizer\.json: ") as told:
        Tokenizer(json.dumps({**BASE, **BOMBS[name]}))
    assert time.process_time() - began < 5
    assert "remove the rule" in told.value.hint


@pytest.mark.slow
def test_all_of_them_take_seconds_and_no_gigabyte(tmp_path: Path) -> None:
    files = [tmp_path / str(number) / "tokenizer.json" for number in range(len(BOMBS))]
    for file, bomb in zip(files, BOMBS.values(), strict=True):
        file.parent.mkdir()
        file.write_text(json.dumps({**BASE, **bomb}))
    refused = bombs.refusals("from orrery.text import load_tokenizer", 'load_tokenizer(path).encode("a b")', files)
    assert {kind for kind, _ in refused} == {"ModelFileError"}


GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+"
)
O200K = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
DEEPSEEK = (
    r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*"
)
HONEST: dict[str, dict[str, Any]] = {
    **{f"pattern {n}": {"pre_tokenizer": parting(regex)} for n, regex in enumerate(
        (GPT2, LLAMA3, O200K, DEEPSEEK, r"(?:\p{L}\p{M}*)+", r"\d{1,3}(?=(?:\d{3})*\b)", r"[\r\n]", " ", r"\s?\S+")
    )},
    "a llama": {
        "normalizer": sequence([{"type": "Prepend", "prepend": "\u2581"}, replacing(" ", "\u2581")]),
        "decoder": sequence([replacing("\u2581", " "), {"type": "ByteFallback"}, {"type": "Fuse"},
                             {"type": "Strip", "content": " ", "start": 1, "stop": 0}], "decoders"),
    },
    "an ALBERT": {"normalizer": sequence([replacing("``", '"'), replacing("''", '"'), {"type": "NFKD"},
                                          {"type": "Lowercase"}, replacing(" {2,}", " ", "Regex")])},
    "rules of SentencePiece": {
        "normalizer": sequence([precompiled(b"b" * 33, b"c"), replacing(" {2,}", " ", "Regex")])},
    "digits": {"pre_tokenizer": sequence([{"type": "Digits", "individual_digits": True}, parting("[0-9]")],
                                         "pretokenizers")},
    "a start and an end": {"post_processor": template(
        [{"SpecialToken": {"id": "<", "type_id": 0}}, TEXT, {"SpecialToken": {"id": ">", "type_id": 0}}],
        {"<": {"id": "<", "ids": [27], "tokens": ["<"]}, ">": {"id": ">", "ids": [28], "tokens": [">"]}})},
}  # fmt: skip


@pytest.mark.parametrize("name", HONEST)
def test_what_published_tokenizers_have_is_read(name: str) -> None:
    tokenizer = Tokenizer(json.dumps({**BASE, **HONEST[name]}))
    assert tokenizer.encode("ab cd")


class Panic(BaseException):
    """As the library's own, which is no `Exception`."""


@pytest.mark.parametrize("call", ["encode_control", "encode_batch", "spans", "word_numbers", "decode"])
def test_a_panic_of_the_library_is_an_ordinary_error(call: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Panicking:
        def __getattr__(self, name: str) -> Any:
            raise Panic("retry-limit-in-match\n over")

    library = engine._Library(json.dumps(BASE), tokenizers.Tokenizer.from_str(json.dumps(BASE)))
    library._library = Panicking()  # type: ignore[assignment]
    library.__dict__["_controls"] = Panicking()
    given = {"encode_batch": (["a"],), "decode": ([1], False)}.get(call, ("a",))
    with pytest.raises(ModelFileError, match="fails on a text: retry-limit-in-match over"):
        getattr(library, call)(*given)


def test_a_pattern_that_is_slow_only_for_a_text_nobody_thought_of_is_an_ordinary_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bounds, "_pumped", lambda regex: iter(["ab!"]))
    slow = Tokenizer(json.dumps({**BASE, "pre_tokenizer": parting("(a+)+b")}))
    for call in (slow.encode, slow.words, slow.spans):
        with pytest.raises(ModelFileError, match=r"the tokenizer fails on a text: .*retry-limit"):
            call("a" * 200 + "!")


def test_time_in_which_others_use_the_machine_is_not_counted() -> None:
    class Waiting:
        def pre_tokenize_str(self, text: str) -> None:
            time.sleep(2 * bounds.SECONDS)

    assert bounds._seconds(Waiting(), "ab") < bounds.SECONDS
