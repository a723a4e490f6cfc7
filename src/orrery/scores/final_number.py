"""The number that a worked answer ends with, as GSM8K asks for it and as lm_eval finds it."""

import re

INVALID = "[invalid]"
"""What stands for an answer without a number; it equals no answer."""

_STRICT = re.compile(r"#### (\-?[0-9\.\,]+)")
_ANY = re.compile(r"(-?[$0-9.,]{2,})|(-?[0-9]+)")
_IGNORED = (re.compile(r","), re.compile(r"\$"), re.compile(r"(?s).*#### "), re.compile(r"\.$"))


def strict(answer: str) -> str:
    """Return the number behind the first ``#### ``, or `INVALID`."""
    match = _STRICT.search(answer)
    return match[1].strip() if match else INVALID


def flexible(answer: str) -> str:
    """Return the last number anywhere, or `INVALID`."""
    matches = list(_ANY.finditer(answer))
    return matches[-1][0].strip() if matches else INVALID


def equal(number: str, answer: str) -> bool:
    """Whether two numbers are written alike, but for commas, dollar signs, a full stop and what stands before ####."""
    return _plain(number) == _plain(answer)


def _plain(text: str) -> str:
    for ignored in _IGNORED:
        text = ignored.sub("", text)
    return text.lower()
