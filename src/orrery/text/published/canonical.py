"""Texts before their pieces: SigLIP's in small letters, without punctuation, with single spaces; ALBERT's unaccented.

Their files hold a SentencePiece model that knows nothing of this, and the class of the tokenizer knows the rest. The
mark that stands for a space in pieces is a space in a text.
"""

import string
from collections.abc import Mapping
from typing import Any

from orrery.text.sentencepiece.export import KEY
from orrery.text.sentencepiece.file import SPACE

_SPACES = "".join(filter(str.isspace, map(chr, range(0x3001))))
"""Every space that Python knows; engines of regular expressions differ in what is one."""


def canonical(made: dict[str, Any], config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tokenizer.json of a SentencePiece model that reads canonical texts.

    Args:
        made: the tokenizer.json of the model itself.
        config: what tokenizer_config.json says; with ``do_lower_case`` false, letters stay as they are.
    """
    lower = [{"type": "Lowercase"}] if config.get("do_lower_case", True) else []
    steps = [
        _replaced({"String": SPACE}, " "),
        *lower,
        _replaced({"Regex": f"[{_escaped(string.punctuation)}]"}, ""),
        _replaced({"Regex": f"[{_escaped(_SPACES)}]+"}, " "),
    ]
    return _before(made, steps)


def without_accents(made: dict[str, Any], config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tokenizer.json of a SentencePiece model that reads texts as ALBERT does. Paper: Lan et al. 2020.

    Args:
        made: the tokenizer.json of the model itself.
        config: what tokenizer_config.json says; with ``keep_accents`` accents stay as they are, and with
            ``do_lower_case`` false letters.
    """
    quotes = [_replaced({"String": mark}, '"') for mark in ("``", "''")]
    accents = [] if config.get("keep_accents", False) else [{"type": "NFKD"}, {"type": "StripAccents"}]
    lower = [{"type": "Lowercase"}] if config.get("do_lower_case", True) else []
    return _before(made, [*quotes, *accents, *lower])


def _before(made: dict[str, Any], steps: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a tokenizer.json with steps before those that normalise its texts."""
    steps = [*steps, *made["normalizer"]["normalizers"]]
    # The model itself, which another key holds, would be read without these steps.
    model = {key: value for key, value in made["model"].items() if key != KEY}
    return {**made, "model": model, "normalizer": {"type": "Sequence", "normalizers": steps}}


def _replaced(pattern: Mapping[str, str], content: str) -> dict[str, Any]:
    return {"type": "Replace", "pattern": dict(pattern), "content": content}


def _escaped(characters: str) -> str:
    return "".join(f"\\x{{{ord(one):X}}}" for one in characters)
