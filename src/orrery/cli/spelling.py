"""Settings in hints, as the verb at hand spells them: `` `skip_bad=N` `` is ``--data.skip_bad N`` of a recipe."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from orrery.cli.suggestions import parser_of, spelled
from orrery.schema.keys import has_key

if TYPE_CHECKING:
    from cyclopts import Argument

_SETTING = re.compile(r"`(?P<name>[a-z_]+)=(?P<value>[^`]+)`")
_BETWEEN = re.compile(r"(; |, or )")
_SECTIONS = ("data", "training", "batches")


def as_flags(hint: str, words: Sequence[str]) -> str:
    """Return a hint with its settings as flags of the verb; what the verb cannot be told is left out.

    A hint of the library names a setting as Python has it, in backticks. Ways to mend it are parted by ``; `` or
    ``, or ``. Where nothing would be left the hint stays as it is.
    """
    if not _SETTING.search(hint) or not words:
        return hint
    parts = _BETWEEN.split(hint)
    parts_as_flags = [
        (between, _told(part, words)) for between, part in zip(["", *parts[1::2]], parts[::2], strict=True)
    ]
    kept = [(between, part) for between, part in parts_as_flags if part]
    return "".join(between * (place > 0) + part for place, (between, part) in enumerate(kept)) or hint


def _told(part: str, words: Sequence[str]) -> str:
    """Return a part of a hint with its settings as flags, or nothing where the verb lacks one."""
    flags = [_flag(match["name"], match["value"], words) for match in _SETTING.finditer(part)]
    if None in flags:
        return ""
    replacements = iter(flags)
    return _SETTING.sub(lambda match: next(replacements) or "", part)


def _flag(name: str, value: str, words: Sequence[str]) -> str | None:
    """Return how a verb is told a setting: by its own flag, or by a key of the recipe that it reads."""
    parser = parser_of(words)
    shown = spelled(parser)
    given = "" if value == "True" else " " + value.strip("'\"")
    if shown.get(name, "").startswith("--"):
        return f"{shown[name]}{given}"
    if any(_takes_keys(argument) for argument in parser or ()):
        from orrery.recipes.config import Recipe

        keys = [f"{section}.{name}" for section in _SECTIONS if has_key(Recipe, f"{section}.{name}")]
        return f"--{keys[0]}{given or ' true'}" if keys else None
    return None


def _takes_keys(argument: "Argument") -> bool:
    """Say whether an argument takes what else stands on the line, as the keys of a recipe."""
    return argument.field_info.name in ("overrides", "words") and bool(argument.parameter.allow_leading_hyphen)
