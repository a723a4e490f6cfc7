"""The numbers of command lines: each kind says its range, and what is no such number is refused by the flag's name."""

import math
import re
from collections.abc import Callable, Sequence
from typing import Any

from cyclopts import Parameter, Token

from orrery.errors import UsageError
from orrery.schema.writing import Setting

MOST, SEEDS = 2**31 - 1, 2**63
"""No count is above the one, no seed as large as the other."""


def _whole(least: int, most: int) -> Callable[[Any, Sequence[Token]], int]:
    return lambda kind, tokens: _whole_number(tokens[0], least, most)


def _whole_number(token: Token, least: int, most: int) -> int:
    # Neither int(), which reads other scripts' digits and underscores, nor a rounded float.
    if not re.fullmatch(r"[+-]?[0-9]{1,40}", token.value):
        raise _refused(token, "no whole number", f"give one from {least:,}")
    number = int(token.value)
    if not least <= number <= most:
        hint = f"give {least:,} or more" if number < least else f"give {most:,} or less"
        raise _refused(token, f"not between {least:,} and {most:,}", hint)
    return number


def _real(least: float | int, most: float | int, above: bool) -> Callable[[Any, Sequence[Token]], float]:
    bounds = f"above {least:g}" if above else f"from {least:g}" if math.isfinite(least) else "finite"
    bounds += f" to {most:g}" if math.isfinite(most) else ""

    def convert(kind: Any, tokens: Sequence[Token]) -> float:
        try:
            number = float(tokens[0].value) if re.fullmatch(r"[-+.0-9eE]{1,60}", tokens[0].value) else math.nan
        except ValueError:
            number = math.nan
        if not math.isfinite(number):
            raise _refused(tokens[0], "no finite number", f"give a number {bounds}")
        if not least <= number <= most or (above and number == least):
            raise _refused(tokens[0], "out of range", f"give a number {bounds}")
        return number

    return convert


def within(setting: Setting) -> Parameter:
    """Return what reads a number of a setting of writing."""
    about = setting.about
    if setting.whole:
        return Parameter(converter=_whole(int(about.least), int(about.most)))
    return Parameter(converter=_real(about.least, about.most, about.above))


def _each(convert: Callable[[Any, Sequence[Token]], float]) -> Parameter:
    return Parameter(
        converter=lambda kind, tokens: tuple(convert(kind, [token]) for token in tokens),
        negative="",
        consume_multiple=1,
        json_list=False,
    )


def _refused(token: Token, reason: str, hint: str) -> UsageError:
    return UsageError(f"{token.keyword or token.source} {token.value[:60]} is {reason}", hint)


COUNT = Parameter(converter=_whole(1, MOST))
TIMES = Parameter(converter=_whole(1, 1000))
"""How often a whole training is done again."""
DRAWN = Parameter(converter=_whole(0, 10_000))
"""Answers drawn for one picture."""
COUNT_OR_NONE = Parameter(converter=_whole(0, MOST))
PORT = Parameter(converter=_whole(0, 65_535))
ONE_OR_MORE = Parameter(negative="", consume_multiple=1, json_list=False)
"""Of a flag with several values behind it: with none of them it would be as if it were not there."""
COUNT_EACH = Parameter(
    converter=lambda kind, tokens: tuple(_whole_number(token, 1, MOST) for token in tokens),
    negative="",
    consume_multiple=1,
    json_list=False,
)
SEED = Parameter(converter=_whole(0, SEEDS - 1))
SEED_EACH = Parameter(
    converter=lambda kind, tokens: tuple(_whole_number(token, 0, SEEDS - 1) for token in tokens),
    negative="",
    consume_multiple=1,
    json_list=False,
)
PLACE = Parameter(converter=_whole(-MOST, MOST))
"""A place in a text, a negative one counted from the end."""
NUMBER = Parameter(converter=_real(-math.inf, math.inf, above=False))
NOT_NEGATIVE = Parameter(converter=_real(0.0, math.inf, above=False))
ABOVE_ZERO = Parameter(converter=_real(0.0, math.inf, above=True))
SECONDS = Parameter(converter=_real(0.0, 86_400.0, above=True))
ABOVE_ZERO_EACH = _each(_real(0.0, math.inf, above=True))
SHARE = Parameter(converter=_real(0.0, 1.0, above=False))
SHARE_EACH = _each(_real(0.0, 1.0, above=False))
