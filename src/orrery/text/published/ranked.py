"""Byte-level BPE as byte strings by rank, of which two neighbours are merged to the lowest that any two make.

Mistral's tekken.json has them with the pattern that cuts texts; its ids are ranks behind the control tokens.
"""

import base64
import binascii
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from orrery.errors import ModelFileError
from orrery.text import frames
from orrery.text.chunks import BYTES
from orrery.text.gguf.rules import CuttingRule
from orrery.text.pieces import bpe_of_bytes, byte_alphabet

TEKKEN = "tekken.json"
HINT = "the file is damaged or of another kind: take it from its origin again"
_MOST = 2_000_000
"""Entries of a list."""
_LARGEST = 256 << 20
"""Bytes of a file; published ones have 20 million."""
_WORK = 10**9
"""The sum of the squares of the strings' lengths, which their merges cost; in published files it is 10 million."""
_CONTROL = (
    "<unk>", "<s>", "</s>", "[INST]", "[/INST]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]", "[TOOL_RESULTS]",
    "[/TOOL_RESULTS]", "[TOOL_CALLS]", "[IMG]", "<pad>", "[IMG_BREAK]", "[IMG_END]", "[PREFIX]", "[MIDDLE]", "[SUFFIX]",
    "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "[TOOL_CONTENT]",
)  # fmt: skip
"""The control tokens of files that list none, as the package mistral-common has them; fillers stand behind them."""


def tekken(file: Path) -> str:
    """Return the tokenizer.json of a tekken.json; a text begins with ``<s>``.

    Raises:
        ModelFileError: the file is damaged or contradicts itself.
    """
    content = _read(file)
    said = content.get("config")
    if not isinstance(said, dict) or not isinstance(said.get("pattern"), str):
        raise ModelFileError(f"{file.name} has no pattern that cuts texts", HINT)
    size, special = (_count(said.get(key), file, key) for key in ("default_vocab_size", "default_num_special_tokens"))
    control = _controls(content.get("special_tokens"), special, file)
    strings = _strings(content.get("vocab"), size - special, file)
    if len(set(control)) + len(set(strings)) < size:
        raise ModelFileError(f"{file.name} has two tokens of one spelling", HINT)
    return of_ranks(
        {string: special + rank for rank, string in enumerate(strings)},
        {token: id for id, token in enumerate(control)},
        [said["pattern"]],
        file,
        opening=["<s>"] if "<s>" in control else [],
    )


def of_ranks(
    strings: Mapping[bytes, int],
    control: Mapping[str, int],
    cuts: Sequence[str],
    file: Path,
    *,
    opening: Sequence[str] = (),
    composed: bool = False,
) -> str:
    """Return the tokenizer.json of byte strings with their ids, the lowest of which are merged first.

    Args:
        strings: the strings in the order of their ids.
        control: the control tokens with theirs.
        cuts: the patterns that cut texts, each what the one before has left.
        file: for messages.
        opening: the control tokens before a text.
        composed: whether characters are composed before (NFC).

    Raises:
        ModelFileError: strings too long to be parts of words, or two tokens of one spelling or id.
    """
    if sum(len(string) ** 2 for string in strings) > _WORK:
        raise ModelFileError(f"{file.name} has strings that are too long for parts of words", HINT)
    letters = {byte: letter for letter, byte in byte_alphabet().items()}
    words = {"".join(letters[byte] for byte in string): id for string, id in strings.items()}
    vocabulary = {**control, **words}
    if len(vocabulary) != len(control) + len(words) or len(set(vocabulary.values())) != len(vocabulary):
        raise ModelFileError(f"{file.name} has two tokens of one spelling, or of one id", HINT)
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    by_id = sorted(control.items(), key=lambda pair: pair[1])
    slots = [*opening, "A"]
    made = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{"id": id, "content": token, **flags, "special": True} for token, id in by_id],
        "normalizer": {"type": "NFC"} if composed else None,
        "pre_tokenizer": CuttingRule(tuple(cuts)).definition,
        "post_processor": frames.of_slots(slots, [*slots, "B"], control.get) if opening else None,
        "decoder": {**BYTES, "trim_offsets": True},
        "model": bpe_of_bytes(vocabulary, list(_merges(list(words))), True),
    }
    return json.dumps(made, ensure_ascii=False)


def _merges(words: list[str]) -> Iterator[list[str]]:
    """Yield every pair of words that makes a third, by the rank of what it makes."""
    known = set(words)
    for word in words:
        yield from (
            [word[:place], word[place:]]
            for place in range(1, len(word))
            if word[:place] in known and word[place:] in known
        )


def _strings(listed: Any, count: int, file: Path) -> list[bytes]:
    """Return the byte strings by rank; the list may go on behind those that count."""
    if not isinstance(listed, list) or not 256 <= count <= len(listed):
        raise ModelFileError(f"{file.name} lists fewer strings than the {count:,} that it counts", HINT)
    found: list[bytes] = []
    for rank, one in enumerate(listed[:count]):
        try:
            if one["rank"] != rank:
                raise ValueError
            found.append(base64.b64decode(one["token_bytes"], validate=True))
        except (KeyError, TypeError, ValueError, binascii.Error):
            raise ModelFileError(f"{file.name}: string {rank} has another rank, or is not base64", HINT) from None
    if missing := {bytes([byte]) for byte in range(256)} - set(found):
        raise ModelFileError(f"{file.name} lacks {len(missing)} of the 256 bytes", HINT)
    return found


def _controls(listed: Any, count: int, file: Path) -> list[str]:
    """Return the control tokens by id, with fillers up to their number."""
    named = dict(enumerate(_CONTROL))
    if listed is not None:
        try:
            named = {one["rank"]: str(one["token_str"]) for one in listed}
        except (KeyError, TypeError):
            raise ModelFileError(f"{file.name}: its special_tokens are no list of ranks and texts", HINT) from None
    if not all(type(rank) is int and 0 <= rank < count for rank in named):
        raise ModelFileError(f"{file.name} has control tokens behind the {count} that it counts", HINT)
    return [named.get(id, f"<SPECIAL_{id}>") for id in range(count)]


def _count(value: Any, file: Path, key: str) -> int:
    if type(value) is not int or not 0 <= value <= _MOST:
        raise ModelFileError(f"{file.name}: {key} = {str(value)[:40]!r} is no number of tokens", HINT)
    return value


def _read(file: Path) -> Mapping[str, Any]:
    if file.stat().st_size > _LARGEST:
        raise ModelFileError(f"{file.name} is larger than {_LARGEST >> 20} MiB", HINT)
    try:
        content = json.loads(file.read_bytes())
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"{file.name} is not JSON: {error}", HINT) from None
    if not isinstance(content, dict):
        raise ModelFileError(f"{file.name} is no JSON object", HINT)
    return content
