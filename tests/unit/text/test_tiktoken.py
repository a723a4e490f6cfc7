"""Files of tiktoken are merged by rank, and cut as the class or the name that they are known by says."""

import base64
import json
import random
import unicodedata
from pathlib import Path
from typing import Any

import pytest

from orrery.errors import ModelFileError
from orrery.text.gguf.rules import RULES
from orrery.text.tokenizer import Tokenizer, load_tokenizer
from unit.text.test_ranked import TEXT, merged, strings

SHORT, LETTERS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)", r"[^\r\n\p{L}\p{N}]?\p{L}+"
REST = r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
ONE, THREE = (rf"{SHORT}|{LETTERS}|{digits}|{REST}" for digits in (r"\p{N}", r"\p{N}{1,3}"))
GPT4 = rf"'(?i:[sdmt]|ll|ve|re)|{LETTERS}|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|\s+\Z|\s*[\r\n]|\s+(?!\S)|\s"
GPT2 = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
OWN = [TEXT, "123456 \r\n ", "  I'LL we've\n \t", "e\u0301 caf\u00e9", "(A)bc Def\n\n x", "", "日本語 abc"]


def written(folder: Path, name: str, listed: list[bytes], **said: Any) -> Tokenizer:
    lines = (base64.b64encode(one) + b" %d\n" % rank for rank, one in enumerate(listed))
    (folder / name).write_bytes(b"".join(lines))
    (folder / "tokenizer_config.json").write_text(json.dumps(said))
    return load_tokenizer(folder)


def agree(ours: Tokenizer, pattern: str, listed: list[bytes], *, composed: bool = False) -> None:
    ranks, draw = {one: rank for rank, one in enumerate(listed)}, random.Random(3)
    for text in (*OWN, *("".join(draw.choices(TEXT, k=30)) for _ in range(20))):
        read = unicodedata.normalize("NFC", text) if composed else text
        assert ours.encode(text) == merged(read, ranks, pattern), text
        assert ours.decode(ours.encode(text)) == read


def many(count: int) -> list[bytes]:
    """Return so many strings, each of which two earlier ones make."""
    listed, draw = strings(0), random.Random(count)
    known = set(listed)
    while len(listed) < count:
        one = draw.choice(listed[:256]) + draw.choice(listed)
        if one not in known and len(one) < 8:
            known.add(one)
            listed.append(one)
    return listed


def added(*tokens: str) -> dict[str, Any]:
    return {str(330 + place): {"content": token, "special": True} for place, token in enumerate(tokens)}


def test_qwens_first_models_compose_and_have_their_marks_behind(tmp_path: Path) -> None:
    own = {"AutoTokenizer": ["tokenization_qwen.QWenTokenizer", None]}
    ours = written(tmp_path, "qwen.tiktoken", strings(0), tokenizer_class="QWenTokenizer", auto_map=own)
    agree(ours, ONE, strings(0), composed=True)
    marks = [ours.id(token) for token in ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|extra_204|>")]
    assert marks == [330, 331, 332, 330 + 207]
    assert ours.encode("<|im_start|>cat", special=True) == [331, *ours.encode("cat")]
    assert 331 not in ours.encode("<|im_start|>")
    assert ours.frame("cat").ids == ours.encode("cat")


def test_kimis_file_has_a_name_of_sentencepieces(tmp_path: Path) -> None:
    said = {"added_tokens_decoder": added("[BOS]", "[EOS]"), "bos_token": "[BOS]", "eos_token": "[EOS]"}
    ours = written(tmp_path, "tiktoken.model", strings(1), tokenizer_class="TikTokenTokenizer", **said)
    agree(ours, RULES["kimi-k2"].cuts[0], strings(1))
    assert (ours.special("start"), ours.special("end"), ours.size) == (330, 331, 332)


def test_glm_begins_texts_with_two_tokens(tmp_path: Path) -> None:
    said = {"tokenizer_class": "ChatGLM4Tokenizer", "added_tokens_decoder": added("<|endoftext|>", "[gMASK]", "<sop>")}
    ours = written(tmp_path, "tokenizer.model", strings(2), **said)
    agree(ours, THREE, strings(2))
    assert ours.frame("cat").ids == [331, 332, *ours.encode("cat")]
    with pytest.raises(ModelFileError, match="have no ids") as refused:
        written(tmp_path, "tokenizer.model", strings(2), tokenizer_class="ChatGLM4Tokenizer")
    assert "added_tokens_decoder" in str(refused.value.hint)


@pytest.mark.parametrize(("name", "count", "pattern", "end"), [
    ("r50k_base", 50256, GPT2, 50256), ("cl100k_base", 100256, GPT4, 100257),
])  # fmt: skip
def test_openais_files_are_known_by_their_names(tmp_path: Path, name: str, count: int, pattern: str, end: int) -> None:
    ours = written(tmp_path, f"{name}.tiktoken", many(count))
    agree(ours, pattern, many(count))
    assert ours.special("end") == end


def test_llama_3_is_known_by_the_number_of_its_strings(tmp_path: Path) -> None:
    ours = written(tmp_path, "tokenizer.model", many(128_000))
    agree(ours, THREE, many(128_000))
    assert ours.frame("cat").ids == [128_000, *ours.encode("cat")]
    assert [ours.id(f"<|{name}|>") for name in ("eot_id", "start_header_id")] == [128_009, 128_006]
    assert ours.size == 128_256


@pytest.mark.parametrize(("name", "said", "message"), [
    ("phi.tiktoken", {}, "cutting texts are not known"),
    ("tokenizer.model", {}, "cutting texts are not known"),
    ("cl100k_base.tiktoken", {"tokenizer_class": "Phi3SmallTokenizer"}, "Phi3SmallTokenizer, which is not known"),
])  # fmt: skip
def test_other_files_are_refused_by_name(tmp_path: Path, name: str, said: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelFileError, match=message) as refused:
        written(tmp_path, name, strings(0), **said)
    assert "QWen" in str(refused.value.hint)


@pytest.mark.parametrize(("content", "message"), [
    (b"IQ== 0\nIg== 1\n", "lacks 254 of the 256 bytes"),
    (b"IQ== 0\nI 1\n", "line 2 is no byte string"),
    (b"IQ== 0\nrank\n", "line 2 is no byte string"),
    (b"IQ== 0\nIg== 0\n", "twice"),
    (b"IQ== 0\nIQ== 1\n", "twice"),
])  # fmt: skip
def test_damaged_files_are_refused(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "cl100k_base.tiktoken").write_bytes(content)
    with pytest.raises(ModelFileError, match=message):
        load_tokenizer(tmp_path)
