"""What a lab is: a question, numbers for a seed, a figure of them, and claims that hold by a margin for every seed."""

import importlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from orrery.errors import UsageError

FILES = ("numbers.json", "figure.svg")
"""What a lab leaves in its folder."""
Numbers = dict[str, Any]
"""What a lab measured with one seed, as JSON has it."""

LABS = {
    "length": "Does a translation get worse as the sentence gets longer, without and with attention?",
    "gradients": "How much of the gradient is left when it comes to a word many steps back?",
    "recall": "Who remembers the word of k steps ago?",
    "bottleneck": "How many operations must wait for each other as the text gets longer?",
    "scores": "What does it cost to score a place: additive (Bahdanau) or multiplicative (Luong)?",
    "contextual": "Is the apple that is eaten the apple that is switched on?",
    "alignment": "Where does attention look while it writes a sentence backwards?",
}
"""The question of every lab; the lab itself is the module of its name, loaded only when it runs."""


@runtime_checkable
class Lab(Protocol):
    """The module of a lab."""

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
    """What a lab found: the numbers by seed, by how much each claim holds in the worst of them, and the figure."""

    name: str
    quick: bool
    runs: Mapping[int, Numbers]
    margins: Mapping[str, float]
    figure: str

    @property
    def failed(self) -> list[str]:
        """The claims that do not hold for every seed; a margin that is not a number holds nothing."""
        return [claim for claim, margin in self.margins.items() if not margin >= 0]

    def write(self, folder: Path) -> None:
        """Write `FILES` into the folder."""
        folder.mkdir(parents=True, exist_ok=True)
        found = {"lab": self.name, "quick": self.quick, "margins": dict(self.margins), "seeds": dict(self.runs)}
        (folder / FILES[0]).write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        (folder / FILES[1]).write_text(self.figure + "\n", encoding="utf-8")


def load_lab(name: str) -> Lab:
    """Return a lab by its name.

    Raises:
        UsageError: there is none.
    """
    if name not in LABS:
        raise UsageError(f"there is no lab {name!r}", f"there are: {', '.join(LABS)}")
    lab: Lab = importlib.import_module(f"{__package__}.{name}")
    return lab


def carry_out(
    name: str, seeds: Sequence[int], *, quick: bool = False, say: Callable[[str], None] = lambda line: None
) -> LabResult:
    """Run a lab with every seed and hold its claims against the worst of them; ``say`` is told before each.

    Raises:
        UsageError: there is no such lab, or no seed.
    """
    lab = load_lab(name)
    if not seeds:
        raise UsageError("a lab needs at least one seed", "give one, such as --seeds 0")
    runs: dict[int, Numbers] = {}
    for seed in seeds:
        say(f"{name}, seed {seed}")
        runs[seed] = lab.run(seed, quick=quick)
    held = [lab.margins(numbers) for numbers in runs.values()]
    # min() would pass over a NaN that comes second.
    margins = {
        claim: min((one[claim] for one in held), key=lambda margin: (margin == margin, margin)) for claim in held[0]
    }
    return LabResult(name, quick, runs, margins, lab.figure(list(runs.values())))
