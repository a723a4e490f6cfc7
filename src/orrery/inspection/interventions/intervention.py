"""One intervention as data: what is done to which part of which tensor; JSON holds it."""

import difflib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, NamedTuple, final

from torch import Tensor

from orrery.errors import UsageError

EVERY: Literal["all"] = "all"
Places = int | tuple[int, ...]
"""One place on an axis, or several."""

LONGEST = 200
"""Characters of a place in the model."""
MOST_STARS = 8
"""Stars of a place: to look for a key takes time that grows with their number and its length."""

_PLACES = ("position", "head", "channel", "key")
JSON = {"source": "from", "source_position": "from_position"}
"""Fields whose names in JSON are words of Python."""
_PYTHON = {word: name for name, word in JSON.items()}


class Operation(NamedTuple):
    """What an operation needs and may have, beside ``at``, as fields of an `Intervention`, and what it says it does.

    ``on_tensors`` tells those that change tensors inside a run from those that change what runs.
    """

    needs: tuple[str, ...]
    may: tuple[str, ...]
    says: str
    on_tensors: bool = True


OPERATIONS: Mapping[str, Operation] = {
    "zero": Operation((), _PLACES, "puts zero in"),
    "mean": Operation((), ("position", "head", "channel", "source"), "puts the mean over positions in"),
    "scale": Operation(("scale",), _PLACES, "multiplies by the number scale"),
    "add": Operation(
        (),
        ("position", "head", "channel", "scale", "vector", "source", "source_position"),
        "adds a vector, or what stands in the trace named by from, times the number scale",
    ),
    "set": Operation(("value",), _PLACES, "puts the number value in"),
    "patch": Operation(("source",), (*_PLACES, "source_position"), "puts in what stands in the trace named by from"),
    "mask": Operation(("key",), ("position", "head"), "hides keys from the queries at the positions"),
    "replace": Operation(("position", "token"), (), "reads another token at positions that are named by number", False),
    "rescale": Operation(
        ("scale",), (), "multiplies the scale of the scores of an attention by the number scale", False
    ),
    "rebase": Operation(("value",), (), "turns rotary positions by the base value", False),
}
"""The operations by name."""


@final
@dataclass(frozen=True)
class Intervention:
    """What is done to a part of a tensor inside a run.

    Places are counted from 0, or from the end by negative numbers. What is not chosen stays as it is, bit for bit.

    Attributes:
        at: the key of a tensor, where ``*`` stands for any characters; for ``replace`` the name of an input, ``ids``;
            for ``rescale`` an attention, ``blocks.*.attention``, for ``rebase`` positions, ``positions.*``.
        op: one of ``OPERATIONS``.
        position: the tokens whose rows are changed; of scores and patterns the queries; of ``k`` and ``v`` the keys.
        head: the heads that are changed; all where nothing is said.
        channel: the channels that are changed; all where nothing is said.
        key: of scores and patterns, the keys that are looked at.
        scale: what ``scale`` and ``rescale`` multiply by; what ``add`` multiplies its vector by, else 1.
        value: what ``set`` puts in; the base of ``rebase``.
        vector: what ``add`` adds: numbers, or the name of a tensor among the sources.
        source: the trace that ``patch``, ``mean`` or ``add`` take from, by its name among the sources.
        source_position: the positions of the other trace, where they are others; of ``add`` the one that is added
            everywhere.
        token: the id that ``replace`` puts in.
    """

    at: str
    op: str
    position: Places | Literal["all"] = EVERY
    head: Places | None = None
    channel: Places | None = None
    key: Places | None = None
    scale: float | None = None
    value: float | None = None
    vector: tuple[float, ...] | str | None = None
    source: str | None = None
    source_position: Places | None = None
    token: int | None = None

    def __post_init__(self) -> None:
        """Refuse what cannot be carried out on any model.

        Raises:
            UsageError: names the field.
        """
        if self.op not in OPERATIONS:
            raise UsageError(f"there is no operation {self.op!r}", _near(str(self.op), OPERATIONS))
        for name, read in _READ.items():
            if getattr(self, name) is not None:
                read(name, getattr(self, name))
        operation = OPERATIONS[self.op]
        given = self.given()
        for name in operation.needs:
            if name not in given:
                raise UsageError(f"{self.op} at {self.at} has no {_word(name)}", f"{self.op}: {operation.says}")
        known = (*operation.needs, *operation.may)
        for name in given:
            if name not in known:
                raise UsageError(
                    f"{self.op} at {self.at} takes no {_word(name)}", f"it takes: {', '.join(map(_word, known))}"
                )
        if self.head is not None and self.channel is not None:
            raise UsageError(
                f"the edit of {self.at} names heads and channels",
                "name one of them: a tensor by head is changed by whole heads",
            )
        if self.op == "rebase" and not given["value"] > 1:
            raise UsageError(
                f"a base of {given['value']:g} turns no positions", "give a number above 1, such as 500000"
            )
        if self.op == "add":
            return self._check_added()
        if self.source_position is not None and _count(self.source_position) != _count(self.position):
            raise UsageError(
                f"{_count(self.source_position)} positions of the source of {self.at} for {_count(self.position)} here",
                "name as many positions as from_position",
            )

    def _check_added(self) -> None:
        if (self.vector is None) == (self.source is None):
            both = "neither a vector nor another trace" if self.vector is None else "a vector and another trace"
            message = f"add at {self.at} takes from {both}"
            raise UsageError(message, "give one of them: vector, or from and from_position")
        if isinstance(self.source_position, tuple) or (self.source is None and self.source_position is not None):
            raise UsageError(
                f"add at {self.at} takes one from_position, of another trace", "name one number, or leave it out"
            )

    def given(self) -> dict[str, Any]:
        """Return the fields that say something, beside ``at`` and ``op``."""
        return {
            field.name: value
            for field in fields(self)[2:]
            if (value := getattr(self, field.name)) is not None and value != field.default
        }

    def plain(self) -> dict[str, Any]:
        """Return the intervention as JSON holds it."""
        words = {
            _word(name): list(value) if isinstance(value, tuple) else value for name, value in self.given().items()
        }
        return {"at": self.at, "op": self.op, **words}

    @staticmethod
    def of(plain: "Mapping[str, Any] | Intervention") -> "Intervention":
        """Return the intervention that JSON holds.

        Raises:
            UsageError: an unknown or a missing field, or one that cannot be carried out.
        """
        if isinstance(plain, Intervention):
            return plain
        if not isinstance(plain, Mapping):
            raise UsageError(
                f"an edit is an object with fields, not {str(plain)[:60]!r}", 'such as {"at": ..., "op": "zero"}'
            )
        words = [_word(field.name) for field in fields(Intervention)]
        for word in plain:
            if word not in words:
                raise UsageError(f"an edit has no field {str(word)[:60]!r}", _near(str(word), words))
        for word in ("at", "op"):
            if word not in plain:
                raise UsageError(
                    f"an edit without {word!r}: {str(dict(plain))[:100]}", "say where it acts and what it does"
                )
        by_word = {_PYTHON.get(word, word): value for word, value in plain.items() if value is not None}
        return Intervention(**{name: _READ[name](name, value) for name, value in by_word.items()})


def _word(name: str) -> str:
    return JSON.get(name, name)


def _near(word: str, known: Sequence[str] | Mapping[str, Any]) -> str:
    close = difflib.get_close_matches(word, list(known), n=2)
    return f"did you mean {' or '.join(map(repr, close))}?" if close else f"there is: {', '.join(known)}"


def _count(places: Any) -> int:
    return len(places) if isinstance(places, tuple) else 1


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise UsageError(f"{_word(name)} = {str(value)[:60]!r} is no name", "give a text that is not empty")
    return value


def _at(name: str, value: Any) -> str:
    text = _text(name, value)
    if len(text) > LONGEST or text.count("*") > MOST_STARS:
        raise UsageError(
            f"at = {text[:60]!r} has {len(text):,} characters and {text.count('*'):,} stars",
            f"a place has at most {LONGEST} and {MOST_STARS}",
        )
    return text


def _places(name: str, value: Any) -> Places | Literal["all"]:
    if type(value) is int or (name == "position" and isinstance(value, str) and value == EVERY):
        return value
    listed = value if isinstance(value, Sequence) and not isinstance(value, str) else ()
    if listed and all(type(place) is int for place in listed):
        return tuple(listed)
    allowed = 'a number, a list of numbers or "all"' if name == "position" else "a number or a list of numbers"
    raise UsageError(f"{_word(name)} = {str(value)[:60]!r} names no places", f"give {allowed}")


def _number(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise UsageError(f"{name} = {str(value)[:60]!r} is no finite number", "give one, such as 0.5")
    return float(value)


def _vector(name: str, value: Any) -> tuple[float, ...] | str:
    if isinstance(value, str) and value:
        return value
    if isinstance(value, Tensor) and value.dim() == 1:
        value = value.tolist()
    if not isinstance(value, Sequence) or not value:
        raise UsageError(
            "a vector is one list of numbers, or the name of one", "give as many as the tensor has channels"
        )
    return tuple(_number("a part of the vector", number) for number in value)


def _id(name: str, value: Any) -> int:
    if type(value) is not int or value < 0:
        raise UsageError(f"{name} = {str(value)[:60]!r} is no id", "give a number of at least 0, as the tokenizer does")
    return value


_READ: Mapping[str, Callable[[str, Any], Any]] = {
    "at": _at,
    "op": _text,
    **dict.fromkeys(("position", "head", "channel", "key", "source_position"), _places),
    **dict.fromkeys(("scale", "value"), _number),
    "vector": _vector,
    "source": _text,
    "token": _id,
}
"""What makes of a value, as JSON or a caller has it, that of a field."""
