"""A command line carried out: parsed, what it names looked for, the verb called."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, is_dataclass
from inspect import BoundArguments, Parameter, signature
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orrery.cli.places import look_for_places
from orrery.errors import UsageError

if TYPE_CHECKING:
    from cyclopts import App

MAY_BE_EMPTY = ("system", "regex")
"""Flags whose text may be empty: no system message, an answer of nothing."""


def call(parser: "App", words: Sequence[str]) -> int:
    """Carry out a command line, and return its exit code: the verb's number, or 0.

    Raises:
        CycloptsError: the words are none of this parser.
        OrreryError: something that they name is not there, or what the verb raises.
    """
    verb, given, _ = parser.parse_args(list(words), exit_on_error=False, print_error=False)
    refuse_empty(verb, given, words)
    look_for_places(verb, given)
    code = verb(*given.args, **given.kwargs)
    return code if isinstance(code, int) else 0


def refuse_empty(verb: Callable[..., Any], given: BoundArguments, words: Sequence[str] = ()) -> None:
    """Refuse flags whose value is an empty text, as of a variable that a shell does not know: it names nothing.

    Of a path only the words of the command line tell: ``Path("")`` is the working folder.

    Raises:
        UsageError: one is.
    """
    for name, value, usual in _flags(verb, given):
        flag = f"--{name.replace('_', '-')}"
        several = value if isinstance(value, list | tuple) else [value]
        no_text = name not in MAY_BE_EMPTY and value != usual and any(one == "" for one in several)
        no_path = value == Path() and (f"{flag}=" in words or (flag, "") in pairwise(words))
        if no_text or no_path:
            raise UsageError(f"{flag} is empty", "leave it out, or give it a value")


def _flags(verb: Callable[..., Any], given: BoundArguments) -> Iterator[tuple[str, Any, Any]]:
    """Yield the flags of a call, those of groups too, with their values and what they are by default."""
    for name, parameter in signature(verb).parameters.items():
        value = given.arguments.get(name)
        if parameter.kind is not Parameter.KEYWORD_ONLY:
            continue
        if is_dataclass(value) and not isinstance(value, type):
            yield from ((one.name, getattr(value, one.name), one.default) for one in fields(value))
        else:
            yield _named(parameter), value, parameter.default


def _named(parameter: Parameter) -> str:
    """Return how a flag is called on the command line."""
    for mark in getattr(parameter.annotation, "__metadata__", ()):
        names = getattr(mark, "name", None) or ()
        for name in [names] if isinstance(names, str) else names:
            if name.startswith("--"):
                return str(name[2:])
    return parameter.name
