"""What a lab is: a question, numbers for a seed, a figure of them, and claims that hold by a margin for every seed."""

import ast
import difflib
import importlib
import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from orrery.errors import DataError, UsageError, did_you_mean, there_are

FILES = ("numbers.json", "figure.svg")
"""What a lab leaves in its folder."""
Numbers = dict[str, Any]
"""What a lab measured with one seed, as JSON has it."""


@runtime_checkable
class Lab(Protocol):
    """The module of a lab, one file each; the first line of its docstring is its question."""

    def run(self, seed: int, quick: bool = False) -> Numbers:
        """Measure with one seed; ``quick`` measures less, for tests."""
        ...

    def figure(self, runs: Sequence[Numbers]) -> str:
        """Draw the numbers of all seeds as one SVG element."""
        ...

    def margins(self, numbers: Numbers) -> Mapping[str, float]:
        """Return each claim and by how much the numbers of a seed keep it; below zero it does not hold."""
        ...


@dataclass(frozen=True)
class LabResult:
    """What a lab found: the numbers by seed, by how much each claim holds in the worst of them, and the figure.

    ``minutes`` are those that all seeds took on the clock of this machine, with whatever else ran on it.
    """

    name: str
    quick: bool
    runs: Mapping[int, Numbers]
    margins: Mapping[str, float]
    figure: str
    minutes: float = 0.0

    @property
    def failed(self) -> list[str]:
        """The claims that do not hold for every seed; a margin that is not a number holds nothing."""
        return [claim for claim, margin in self.margins.items() if not margin >= 0]

    def write(self, folder: Path) -> None:
        """Write `FILES` into the folder."""
        folder.mkdir(parents=True, exist_ok=True)
        content = {
            "lab": self.name,
            "quick": self.quick,
            "minutes": round(self.minutes, 2),
            "margins": dict(self.margins),
            "seeds": dict(self.runs),
        }
        (folder / FILES[0]).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
        (folder / FILES[1]).write_text(self.figure + "\n", encoding="utf-8")

    @classmethod
    def read(cls, folder: Path) -> "LabResult | None":
        """Return what `write` left in a folder, or None where it is not there, or was cut off.

        Raises:
            DataError: a file is there that no lab has written.
        """
        files = [folder / name for name in FILES]
        if not all(path.is_file() for path in files):
            return None
        try:
            content = json.loads(files[0].read_text(encoding="utf-8"))
            runs = {int(seed): numbers for seed, numbers in content["seeds"].items()}
            known = (content["lab"], content["quick"], runs, content["margins"])
            return cls(*known, files[1].read_text(encoding="utf-8").strip(), float(content["minutes"]))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            message = f"{files[0]} has no numbers of a lab: {error!r}"
            raise DataError(message, "remove it, or choose another folder") from error


_registered: dict[str, tuple[str, Lab]] = {}


def register(name: str, question: str, lab: Lab) -> None:
    """Make a lab of a program's own known under a name.

    Raises:
        UsageError: the name is that of another lab.
    """
    if name in _own():
        raise UsageError(f"there is a lab {name} already", "choose another name")
    _registered[name] = (question, lab)


def questions() -> dict[str, str]:
    """Return the question of every lab by its name; no lab is imported for that."""
    by_name = {name: _docstring(path).partition("\n")[0] for name, path in _own().items()}
    return dict(sorted((by_name | {name: question for name, (question, _) in _registered.items()}).items()))


def _own() -> dict[str, Path]:
    """Return the files of the package's labs: those whose names begin with no underscore."""
    return {path.stem: path for path in Path(__file__).parent.glob("[!_]*.py")}


@cache
def _docstring(path: Path) -> str:
    """Return a module's docstring without importing it."""
    return ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""


def about(name: str) -> list[str]:
    """Return the paragraphs with which a lab of the package says what it does, after its question."""
    path = _own().get(name)
    paragraphs = _docstring(path).split("\n\n")[1:] if path else []
    return [" ".join(paragraph.split()) for paragraph in paragraphs]


def _asking(word: str) -> list[str]:
    """Return the labs whose question has a word, or one that is spelled nearly so."""
    words = {name: re.findall(r"\w+", question.lower()) for name, question in questions().items()}
    return [name for name, known in words.items() if difflib.get_close_matches(word.lower(), known, cutoff=0.8)][:4]


def load_lab(name: str) -> Lab:
    """Return a lab by its name.

    Raises:
        UsageError: there is none.
    """
    if name in _registered:
        return _registered[name][1]
    if name not in _own():
        asking = _asking(name)
        near = f"did you mean {' or '.join(asking)}? " if asking and not did_you_mean(name, questions()) else ""
        raise UsageError(f"there is no lab {name!r}", f"{near}{there_are(name, questions())}")
    lab: Lab = importlib.import_module(f"{__package__}.{name}")
    return lab


@dataclass(frozen=True)
class Timed:
    """The numbers of one seed, and the minutes that they took."""

    numbers: Numbers
    minutes: float


def measure(name: str, seed: int, quick: bool) -> Timed:
    """Run a lab with one seed."""
    begun = time.perf_counter()
    numbers = load_lab(name).run(seed, quick=quick)
    return Timed(numbers, (time.perf_counter() - begun) / 60)


def carry_out(
    name: str,
    seeds: Sequence[int],
    *,
    quick: bool = False,
    say: Callable[[str], None] = lambda line: None,
    measure: Callable[[str, int, bool], Timed] = measure,
) -> LabResult:
    """Run a lab with every seed and hold its claims against the worst of them; ``say`` is told before each.

    Raises:
        UsageError: there is no such lab, or no seed.
    """
    lab = load_lab(name)
    if not seeds:
        raise UsageError("a lab needs at least one seed", "give one, such as --seeds 0")
    timed: dict[int, Timed] = {}
    for seed in seeds:
        say(f"{name}, seed {seed}")
        timed[seed] = measure(name, seed, quick)
    runs = {seed: one.numbers for seed, one in timed.items()}
    held = [lab.margins(numbers) for numbers in runs.values()]
    # min() would pass over a NaN that comes second.
    margins = {
        claim: min((one[claim] for one in held), key=lambda margin: (margin == margin, margin)) for claim in held[0]
    }
    minutes = sum(one.minutes for one in timed.values())
    return LabResult(name, quick, runs, margins, lab.figure(list(runs.values())), minutes)


def readable(number: int | float) -> str:
    """Return a count whole, another number with four figures."""
    return f"{number:,}" if isinstance(number, int) else f"{number:.4g}"


def flat(numbers: object, path: str = "") -> dict[str, int | float]:
    """Return the numbers of a tree by their path; lists, which are for the figure, are left out."""
    if isinstance(numbers, dict):
        return {
            key: value
            for name, part in numbers.items()
            for key, value in flat(part, f"{path}, {name}" if path else str(name)).items()
        }
    return {path: numbers} if isinstance(numbers, int | float) else {}
