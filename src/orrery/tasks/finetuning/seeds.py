"""A fine-tuning with one seed or several: each trained, each scored, their mean and spread."""

import sys
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from orrery.errors import UsageError
from orrery.recipes.config import Recipe
from orrery.reports.frames import frame
from orrery.runs.execute import execute
from orrery.runs.going_on import as_begun
from orrery.tasks._task import TASKS, Learned, to_learn
from orrery.tasks.finetuning.conclude import conclude
from orrery.tasks.finetuning.findings import Findings, Several
from orrery.training.processes import leads
from orrery.training.progress import Reporter

if TYPE_CHECKING:
    from orrery.language_model.model import LanguageModel


@dataclass(frozen=True)
class Finetuned:
    """What became of a fine-tuning.

    Attributes:
        folder: where it lies.
        findings: of each seed; of several processes the first alone has them.
        signal: the signal that stopped it, if one did.
        runs: the folder of each seed that was finished.
    """

    folder: Path
    findings: tuple[Findings, ...]
    signal: int | None = None
    runs: tuple[Path, ...] = ()

    def to_pandas(self) -> Any:
        """Return the scores as a ``pandas.DataFrame``: a row for each seed, what simple methods reach beside it.

        Raises:
            MachineError: pandas is not installed.
        """
        return frame([_scores(run, found) for run, found in zip(self.runs, self.findings, strict=False)], "run")

    def load(self, **how: Any) -> "LanguageModel":
        """Return the model, of several seeds the first; arguments as in ``orrery.load``."""
        from orrery.language_model.load import load

        return load(self.runs[0], **how)


def _scores(run: Path, found: Findings) -> dict[str, Any]:
    """Return what is found of one seed by the names of columns, what simple methods reach among them."""
    floors = {f"{name}: {floor.name}": floor.score for name, floor in (*found.floors, *found.others)}
    return {"run": run.name, **{one.name: one.score for one in found.scores}, **floors}


def _asked_by(kind: type[Learned]) -> str | None:
    """Return the words of the command that asks a model of a program's own task, which knows it by its file."""
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    return f"with {file} {kind.verb}" if kind in TASKS.own() and kind.verb and file else None


def with_seeds(
    recipe: Recipe,
    folder: Path,
    reporter: Callable[[], Reporter],
    say: Callable[[str], None],
    *,
    seeds: int = 1,
    resume: bool = False,
    overwrite: bool = False,
    inputs: Iterable[Path] = (),
    asked: Collection[str] | None = None,
) -> Finetuned:
    """Train a recipe with one seed or several, score each model, and say their mean and spread.

    Args:
        recipe: what is trained, with its task; further seeds are the next numbers.
        folder: of the run; of several, ``seed-N`` in it each.
        reporter: makes what shows the progress of one run.
        say: told the scores.
        seeds: how many.
        resume: continue the runs that are there.
        overwrite: replace the runs that are there.
        inputs: files that no run may replace.
        asked: dotted keys that were asked for, where the rest of the recipe was found from the data: a run that goes on
            keeps what was found for it. None of a recipe that somebody wrote.

    Raises:
        UsageError: there is nothing held back to score on.
    """
    kind = to_learn(recipe.task or "")
    if not recipe.data.holds_back:
        raise UsageError("nothing is held back to score the model on", "give --val FILE, or leave data.split in")
    say = say if leads() else (lambda line: None)
    scored: list[Findings] = []
    places: list[Path] = []
    files = list(inputs)
    for number in range(seeds):
        one = recipe.model_copy(update={"seed": recipe.seed + number})
        place = folder if seeds == 1 else folder / f"seed-{one.seed}"
        if resume and asked is not None:
            one = as_begun(one, place, asked, kind.found_in_recipes)
        began = perf_counter()
        outcome = execute(
            one, place, reporter(), resume=resume, overwrite=overwrite, inputs=files, asked_by=_asked_by(kind)
        )
        if outcome.signal:
            return Finetuned(folder, tuple(scored), outcome.signal, tuple(places))
        if leads():
            scored.append(conclude(kind, one, place, say, None if resume else perf_counter() - began))
        places.append(place)
    if seeds > 1 and scored:
        numbers = [recipe.seed + number for number in range(seeds)]
        say(str(Several(scored[0].main.name, [each.main.score for each in scored], numbers)))
    return Finetuned(folder, tuple(scored), None, tuple(places))
