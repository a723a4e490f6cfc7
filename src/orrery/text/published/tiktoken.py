"""Files of tiktoken, as OpenAI, Qwen 1, Llama 3 and Kimi have them: byte strings in base64 with ranks, one a line.

What cuts texts and the control tokens stand in no such file: the class of a folder's tokenizer knows them, or the
name of the file, or, of Llama 3, the number of its strings.
"""

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from orrery.errors import ModelFileError
from orrery.text.gguf.rules import RULES as CUTTING_RULES
from orrery.text.published.ranked import HINT, of_ranks

SUFFIX = ".tiktoken"
_LINE = re.compile(rb"([A-Za-z0-9+/]+={0,2}) (\d{1,9})")
_LARGEST = 64 << 20
"""Bytes of a file; published ones have four million."""
_LLAMA3 = 128_000
"""Strings of Llama 3's file."""
_END = "<|endoftext|>"
_CL100K = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s+\z|\s*[\r\n]|\s+(?!\S)|\s"
)
"""As GPT-4's, which keeps the blanks at the end of a text together, also behind the end of a line."""


@dataclass(frozen=True)
class Rules:
    """What is known of a vocabulary beside its file.

    Attributes:
        cuts: the patterns that cut texts.
        behind: control tokens that stand behind the strings, by their places there.
        fixed: control tokens with their ids.
        opening: the control tokens before a text.
        composed: whether characters are composed before (NFC).
    """

    cuts: tuple[str, ...]
    behind: tuple[str, ...] = ()
    fixed: Mapping[str, int] | None = None
    opening: tuple[str, ...] = ()
    composed: bool = False


def _reserved(start: int, end: int) -> list[str]:
    return [f"<|reserved_special_token_{number}|>" for number in range(start, end)]


_OF_LLAMA3 = (
    "<|begin_of_text|>", "<|end_of_text|>", *_reserved(0, 4), "<|start_header_id|>", "<|end_header_id|>",
    *_reserved(4, 5), "<|eot_id|>", *_reserved(5, 251),
)  # fmt: skip
_FILL = ("<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>")
_BY_NAME: Mapping[str, Rules] = {
    "r50k_base": Rules((), fixed={_END: 50256}),
    "p50k_base": Rules((), fixed={_END: 50256}),
    "cl100k_base": Rules(
        (_CL100K,),
        fixed={_END: 100257, **{token: 100258 + place for place, token in enumerate(_FILL)}, "<|endofprompt|>": 100276},
    ),
    "o200k_base": Rules(CUTTING_RULES["gpt-4o"].cuts, fixed={_END: 199999, "<|endofprompt|>": 200018}),
}
_QWEN = (_END, "<|im_start|>", "<|im_end|>", *(f"<|extra_{number}|>" for number in range(205)))
_BY_CLASS: Mapping[str, Rules] = {
    "QWen": Rules(CUTTING_RULES["qwen2"].cuts, behind=_QWEN, composed=True),
    "ChatGLM4": Rules(CUTTING_RULES["glm4"].cuts, opening=("[gMASK]", "<sop>")),
    "TikToken": Rules(CUTTING_RULES["kimi-k2"].cuts),
}
"""By the class of a tokenizer_config.json, without "Tokenizer": those that a model's own code defines."""
_OF_LLAMA = Rules(CUTTING_RULES["llama3"].cuts, behind=_OF_LLAMA3, opening=_OF_LLAMA3[:1])
KNOWN = ", ".join([*_BY_CLASS, *(name + SUFFIX for name in _BY_NAME), "Llama 3's tokenizer.model"])


def is_tiktoken(file: Path) -> bool:
    """Say whether a file holds byte strings with ranks: Llama 3's and Kimi's have a name of SentencePiece's."""
    with file.open("rb") as opened:
        return bool(_LINE.fullmatch(opened.readline(1 << 12).rstrip(b"\r\n")))


def tiktoken(file: Path, name: str, added: Mapping[str, int]) -> str:
    """Return the tokenizer.json of a file of tiktoken's.

    Args:
        file: the file.
        name: the class of the folder's tokenizer, without "Tokenizer"; empty where nothing names one.
        added: the tokens that tokenizer_config.json adds, with their ids.

    Raises:
        ModelFileError: the file is damaged, or nothing that is known says how it cuts texts.
    """
    strings = _strings(file)
    rules = _rules(file, name, len(strings))
    first = 1 + max(strings.values())
    control = {token: first + place for place, token in enumerate(rules.behind)} | dict(rules.fixed or {})
    taken = set(added.values())
    control = {token: id for token, id in control.items() if id not in taken} | dict(added)
    if missing := [token for token in rules.opening if token not in control]:
        raise ModelFileError(
            f"the tokens {' and '.join(missing)} before its texts have no ids",
            "put the tokenizer_config.json of the same model beside it, whose added_tokens_decoder has them",
        )
    return of_ranks(strings, control, rules.cuts, file, opening=rules.opening, composed=rules.composed)


def _rules(file: Path, name: str, count: int) -> Rules:
    found = _BY_CLASS.get(name) if name else _BY_NAME.get(file.stem)
    if found is None and file.suffix != SUFFIX and count == _LLAMA3 and name in ("", "Llama"):
        found = _OF_LLAMA
    if found is None:
        whose = f"of {name}Tokenizer, which" if name else "whose rules for cutting texts"
        raise ModelFileError(
            f"{file.name} holds byte strings of tiktoken, {whose} {'is not known' if name else 'are not known'}",
            f"put the model's tokenizer.json into the folder, which holds them; known without it: {KNOWN}",
        )
    return found


def _strings(file: Path) -> dict[bytes, int]:
    """Return the byte strings in the order of their ranks."""
    if file.stat().st_size > _LARGEST:
        raise ModelFileError(f"{file.name} is larger than {_LARGEST >> 20} MiB", HINT)
    pairs = sorted(_pairs(file), key=lambda pair: pair[1])
    strings = dict(pairs)
    if len(strings) < len(pairs) or len(set(strings.values())) < len(pairs):
        raise ModelFileError(f"{file.name} has a string or a rank twice", HINT)
    if missing := {bytes([byte]) for byte in range(256)} - set(strings):
        raise ModelFileError(f"{file.name} lacks {len(missing)} of the 256 bytes", HINT)
    return strings


def _pairs(file: Path) -> Iterator[tuple[bytes, int]]:
    for number, line in enumerate(file.read_bytes().splitlines(), 1):
        found = _LINE.fullmatch(line)
        try:
            if found:
                yield base64.b64decode(found[1], validate=True), int(found[2])
                continue
        except binascii.Error:
            found = None
        if line:
            raise ModelFileError(f"{file.name} line {number} is no byte string in base64 with its rank", HINT)
