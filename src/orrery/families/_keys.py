"""What a family says of a key of ``config.json``: what an absent one means, and which values it may have at all.

``DEFAULTS`` of a family holds plain values where these tell enough: a truth value, a whole number that is not negative,
another number that is not negative, a text. Where they do not, one of the functions below stands around the default.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from orrery.errors import ModelFileError


@dataclass(frozen=True)
class Key:
    """One key.

    Attributes:
        default: what an absent key means.
        kinds: what JSON may call the value; none where only a family from outside knows.
        null: whether null means that there is no such thing, or that another key tells, where the default does not.
        whole: whether the number counts something.
        negative: whether the number may be below zero.
        zero: whether the number may be zero; what something is divided by, or nothing is left of, may not.
    """

    default: Any
    kinds: tuple[str, ...] = ()
    null: bool = False
    whole: bool = False
    negative: bool = False
    zero: bool = True

    def fault(self, value: Any) -> str | None:
        """Say what is wrong with a value, if anything is."""
        if value is None:
            # Files write null for false.
            meant = self.null or self.default is None or self.kinds == ("truth value",)
            return None if meant else f"null, not a {self.kinds[0]}"
        if self.kinds and _kind(value) not in self.kinds:
            return f"a {_kind(value)}, not a {' or a '.join(self.kinds)}"
        if self.kinds != ("number",):
            return None
        if value < 0 and not self.negative:
            return "less than zero"
        if self.whole and isinstance(value, float) and not value.is_integer():
            return "not a whole number"
        return "not more than zero" if value == 0 and not self.zero else None


def size(default: int | None, *, null: bool = False) -> Key:
    """Return a key that counts something of which there is at least one."""
    return Key(default, ("number",), null, whole=True, zero=default == 0)


def count(default: int | None, *, null: bool = False) -> Key:
    """Return a key that counts something of which there may be none."""
    return Key(default, ("number",), null, whole=True)


def token(default: int | None) -> Key:
    """Return a key that names a token; null and a negative number mean that there is no such token."""
    return Key(default, ("number",), null=True, whole=True, negative=True)


def positive(default: int | float | None, *, null: bool = False) -> Key:
    """Return a key that is a number above zero."""
    return Key(default, ("number",), null, zero=False)


def number(default: int | float | None) -> Key:
    """Return a key that is a number and may be zero, though its default may be whole or null."""
    return Key(default, ("number",))


def text(default: str, *, null: bool = False) -> Key:
    """Return a key that is a word."""
    return Key(default, ("text",), null)


def items(default: Any = None) -> Key:
    """Return a key that is a list."""
    return Key(default, ("list",))


def table(default: Any = None, *, null: bool = False) -> Key:
    """Return a key that is an object."""
    return Key(default, ("object",), null)


def key_of(default: Any) -> Key:
    """Return what a family says of a key, of which a plain default may be all."""
    if isinstance(default, Key):
        return default
    if default is None:
        return Key(None, negative=True)
    kind = _kind(default)
    below = kind == "number" and default < 0
    return Key(default, (kind,), whole=type(default) is int, negative=below)


def plain(defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Return what an absent key means, by key."""
    return {name: key_of(default).default for name, default in defaults.items()}


def check_value(family: str, name: str, value: Any, key: Key) -> None:
    """Refuse a value of another kind, null without a meaning, and numbers too small.

    The word "false" would count as true, and a null or a negative number fails far from the key, or not at all.

    Raises:
        ModelFileError: names the key as the file does, the value and what it should be.
    """
    if fault := key.fault(value):
        raise ModelFileError(f"{family}: {name} = {str(value)[:40]!r} is {fault}", "get the file again from its source")


def _kind(value: Any) -> str:
    """Return what JSON calls a value."""
    for kind, name in ((bool, "truth value"), (int | float, "number"), (str, "text"), (list | tuple, "list")):
        if isinstance(value, kind):
            return name
    return "null" if value is None else "object"
