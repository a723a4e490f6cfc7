"""The commands of ``orrery chat``: lines that begin with a slash."""

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orrery.cli.console import printable
from orrery.errors import UsageError
from orrery.schema.writing import DRAWING, SETTINGS

if TYPE_CHECKING:
    from orrery.generation.conversation import Conversation
    from orrery.generation.row import Generation

SHORT = "/help lists the commands, /quit or Ctrl-D leaves"
HELP = """\
/again            another answer to the last question
/edit TEXT        TEXT in the place of the last question
/undo             forgets the last question and its answer
/reset            forgets the conversation
/history          shows the conversation
/set              shows how answers are drawn; /set temperature 0.2 changes it
/save FILE.jsonl  appends the conversation to a file
/quit             leaves, as does Ctrl-D"""
CHANGED = {name: SETTINGS[name] for name in ("max_new_tokens", *DRAWING) if SETTINGS[name].number}
"""What ``/set`` changes."""


def obey(
    talk: "Conversation", settings: dict[str, Any], line: str
) -> "Callable[[Callable[[str], None]], Generation | None] | None":
    """Do what a line says; return what answers, where it asks for an answer.

    Args:
        talk: the conversation.
        settings: how answers are drawn; ``/set`` changes them in place.
        line: what was typed.

    Raises:
        UsageError: there is no such command, or it cannot be done.
    """
    word, _, rest = line.strip().partition(" ")
    rest = rest.strip()
    if rest and word == "/edit":
        return partial(talk.edit, rest)
    if rest and word == "/save":
        talk.save(Path(rest))
        _tell(f"{len(talk.messages)} messages added to {rest}")
    elif word == "/set":
        if rest:
            _set(settings, rest)
        _tell(", ".join(f"{name} {settings[name]}" for name in CHANGED if settings.get(name) is not None))
    elif rest or word not in PLAIN:
        raise UsageError(f"no command {line.strip()[:80]!r}", f"{SHORT}; a space before the / makes it a question")
    else:
        return PLAIN[word](talk)
    return None


def _again(talk: "Conversation") -> "Callable[[Callable[[str], None]], Generation | None]":
    return talk.again


def _undo(talk: "Conversation") -> None:
    talk.undo()
    _tell("the last question and its answer are forgotten")


def _reset(talk: "Conversation") -> None:
    talk.reset()
    _tell("forgotten")


def _history(talk: "Conversation") -> None:
    for message in talk.messages:
        _tell(f"{message['role']}: {message['content']}")


def _help(talk: "Conversation") -> None:
    _tell(HELP)


PLAIN: "dict[str, Callable[[Conversation], Callable[[Callable[[str], None]], Generation | None] | None]]" = {
    "/again": _again,
    "/undo": _undo,
    "/reset": _reset,
    "/history": _history,
    "/help": _help,
}
"""The commands that take nothing."""


def _set(settings: dict[str, Any], rest: str) -> None:
    """Change one setting; one outside its range leaves all as they were."""
    name, _, text = rest.replace("=", " ").partition(" ")
    name = name.replace("-", "_").strip("_")
    if name not in CHANGED:
        raise UsageError(f"there is no setting {name[:40]!r}", f"there are {', '.join(CHANGED)}")
    try:
        value = int(text) if CHANGED[name].whole else float(text)
    except ValueError as error:
        raise UsageError(f"{name} {text.strip()[:40]!r} is no number", f"such as /set {name} 1") from error
    CHANGED[name].refuse(value)
    settings[name] = value


def _tell(text: str) -> None:
    print(printable(text), file=sys.stderr)
