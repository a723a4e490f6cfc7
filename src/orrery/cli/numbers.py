"""The numbers of command lines: each kind says its range, and what is no such number is refused by the flag's name."""

import math
import re
from collections.abc import Callable, Sequence
from typing import Any

from cyclopts import Parameter, Token

MOST = 2**31 - 1
"""No count is larger."""


def _whole(least: int, most: int) -> Callable[[Any, Sequence[Token]], int]:
    def convert(kind: Any, tokens: Sequence[Token]) -> int:
        return _whole_number(tokens[0].value, least, most)

    return convert


def _whole_number(word: str, least: int, most: int) -> int:
    # Neither int(), which reads other scripts' digits and underscores, nor a rounded float.
    if not re.fullmatch(r"[+-]?[0-9]{1,40}", word):
        raise ValueError(f"{word[:60]!r} is no whole number")
    number = int(word)
    if not least <= number <= most:
        raise ValueError(f"{number} is not between {least:,} and {most:,}")
    return number


def _real(least: float, most: float, above: bool) -> Callable[[Any, Sequence[Token]], float]:
    def convert(kind: Any, tokens: Sequence[Token]) -> float:
        word = tokens[0].value
        number = float(word) if re.fullmatch(r"[-+.0-9eE]{1,60}", word) else math.nan
        if not math.isfinite(number):
            raise ValueError(f"{word[:60]!r} is no finite number")
        if not least <= number <= most or (above and number == least):
            bounds = f"above {least:g}" if above else f"at least {least:g}"
            raise ValueError(f"{number:g} is not {bounds}" + (f" and at most {most:g}" if math.isfinite(most) else ""))
        return number

    return convert


def _seeds(kind: Any, tokens: Sequence[Token]) -> tuple[int, ...]:
    return tuple(_whole_number(token.value, 0, 2**63 - 1) for token in tokens)


COUNT = Parameter(converter=_whole(1, MOST))
COUNT_OR_NONE = Parameter(converter=_whole(0, MOST))
SEED = Parameter(converter=_whole(0, 2**63 - 1))
SEEDS = Parameter(converter=_seeds, negative="", consume_multiple=True)
NUMBER = Parameter(converter=_real(-math.inf, math.inf, above=False))
NOT_NEGATIVE = Parameter(converter=_real(0.0, math.inf, above=False))
ABOVE_ZERO = Parameter(converter=_real(0.0, math.inf, above=True))
SHARE = Parameter(converter=_real(0.0, 1.0, above=False))
