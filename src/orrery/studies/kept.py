"""What every study leaves: a folder held for one process, a file of what is done, and a page of what is known so far.

A study writes its results after each piece of work. One that was stopped or killed reads them, refuses other settings
and another text, and does what is not done.
"""

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from orrery.checkpoints.disk import machine_errors, write_text
from orrery.checkpoints.lock import NAME as LOCK
from orrery.checkpoints.lock import folder_lock
from orrery.errors import DataError, UsageError
from orrery.recipes.read import flatten
from orrery.training.processes import processes

TOKENIZER = "tokenizer"
"""The folder inside it of the tokenizer that all trainings share, which is there first."""
ELSEWHERE = "choose another folder with --output"
Found = TypeVar("Found")
Say = Callable[[str], None]


@contextmanager
def held(folder: Path, refuse: Callable[[], None]) -> Iterator[None]:
    """Hold a folder for this process; ``refuse`` raises, before and behind the lock, where it must be left alone.

    Raises:
        UsageError: the folder is a file, or torchrun has started several processes.
        MachineError: another process writes there.
    """
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file", ELSEWHERE)
    if processes() > 1:
        hint = "start it without torchrun; the recipe of a single model runs on several processes"
        raise UsageError("what trains several models runs in one process", hint)
    refuse()
    with folder_lock(folder):
        refuse()
        yield


@dataclass(frozen=True)
class Kept:
    """The folder of a study.

    Attributes:
        path: of the folder.
        name: of its files: ``NAME.json`` says what is done, ``NAME.html`` shows it.
        what: what they are of, in a word or two.
    """

    path: Path
    name: str
    what: str

    @property
    def result(self) -> Path:
        """The file of what is done."""
        return self.path / f"{self.name}.json"

    @property
    def page(self) -> Path:
        """The page."""
        return self.path / f"{self.name}.html"

    def refuse_others(self, resume: bool) -> None:
        """Raise ``UsageError`` for what is not of this kind, and without ``resume`` for what is to be gone on with."""
        path = self.path
        entries = sorted(entry.name for entry in path.iterdir() if entry.name != LOCK) if path.exists() else []
        parts = (f"{self.result.name}.tmp-", ".orrery-")
        begun = self.result.name in entries or all(name == TOKENIZER or name.startswith(parts) for name in entries)
        message = f"{path} is not empty: it has {', '.join(entries[:3])}"
        if not begun:
            raise UsageError(f"{message}, and no {self.what}", ELSEWHERE)
        if entries and not resume:
            raise UsageError(message, f"add --resume to go on with it, or {ELSEWHERE}")

    def earlier(
        self, read: Callable[[Any], Found], settings: Mapping[str, Any], growing: Collection[str] = ()
    ) -> Found | None:
        """Return what ``read`` makes of the values that an earlier call left, if there was one.

        Its ``settings`` must be those given, but for the keys ``growing``.

        Raises:
            UsageError: the file is of something else, or of other settings; the first that differs is named.
        """
        if not self.result.exists():
            return None
        try:
            before: Any = read(json.loads(self.result.read_text(encoding="utf-8")))
            was = flatten(before.settings)
        except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            raise UsageError(f"{self.result} is not of a {self.what}: {error}", ELSEWHERE) from error
        now = flatten(settings)
        for key in sorted(was.keys() | now.keys()):
            if was.get(key) != now.get(key) and key not in growing:
                message = f"--resume: {key} was {was.get(key)!r} and is now {now.get(key)!r}"
                raise UsageError(message, f"take the old value, or {ELSEWHERE}")
        return before

    def refuse_moved(self, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
        """Raise ``DataError`` where the facts of the text are not what they were."""
        if before != now:
            message = f"--resume: the text is not the one that this {self.what} began with"
            raise DataError(message, "restore it, or begin again")

    def note(self, values: Mapping[str, Any]) -> None:
        """Write what is known so far."""
        with machine_errors(self.path):
            write_text(self.result, as_json(values))

    def leave(self, values: Mapping[str, Any], page: str, figures: Mapping[str, str] | None = None) -> None:
        """Write what is known so far, the page of it, and figures by their names."""
        self.note(values)
        with machine_errors(self.path):
            write_text(self.page, page)
            for name, svg in (figures or {}).items():
                write_text(self.path / f"{name}.svg", svg)


def as_json(values: Mapping[str, Any]) -> str:
    """Return values as the text of a file, in the letters that they have."""
    # A path that is no UTF-8 holds halves of letters, which JSON writes as Python does.
    return json.dumps(values, indent=1, ensure_ascii=False).encode("utf-8", "backslashreplace").decode() + "\n"


def once(label: str, done: bool, work: Callable[[], Found | int], keep: Callable[[Found], str], say: Say) -> int | None:
    """Do a piece of work that is not done; return the number of the signal that stopped it, if one did.

    ``work`` returns what came out, or that number; ``keep`` writes the former down, and returns it in words.
    """
    if done:
        say(f"{label}: done before")
        return None
    outcome = work()
    if isinstance(outcome, int):
        return outcome
    say(f"{label}: {keep(outcome)}")
    return None
