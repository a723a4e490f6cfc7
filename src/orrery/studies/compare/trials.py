"""The trials of a sweep carried out: short trainings, each judged on training text that none of them learned."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from orrery.checkpoints.disk import machine_errors, remove
from orrery.errors import RunError
from orrery.recipes.config import Recipe
from orrery.studies.compare.budgets import Budget
from orrery.studies.compare.findings import SweepResult, Trial
from orrery.studies.compare.learning import scheduled, steps_in, time_and_tokens
from orrery.studies.compare.sweep import Sweep, at_edge
from orrery.studies.compare.texts import Texts
from orrery.studies.kept import Say, once
from orrery.studies.training import Watch, training_in

FOLDER = "sweep"
"""Where the runs of the trials lie, inside their model's folder, until the sweep is done."""


@dataclass(frozen=True)
class Trials:
    """The trials of one model: its recipe, the budget and the speed of each trial, and where they run."""

    recipe: Recipe
    sweep: Sweep
    budget: Budget
    speed: float
    texts: Texts
    folder: Path

    def run(self, result: SweepResult, say: Say, watch: Watch, keep: Callable[[], None]) -> int | None:
        """Do the trials that ``result`` lacks, and ``keep`` after each; return the signal that stopped it, if one did.

        Raises:
            RunError: every trial came apart.
        """
        name, centre = self.recipe.name, self.recipe.training.optimizer.rate
        before = len(result.trials)
        while (chosen := self.sweep.next(result.trials, centre)) is not None:
            number = len(result.trials) + 1
            label = f"{name}: trial {number} of {self.sweep.trials}, rate {chosen[0]:.3g}, warm-up {chosen[1]:.0%}"
            do, note = partial(self._one, number, *chosen, say, watch), partial(noted, result, keep)
            if stopped := once(label, False, do, note, say):
                return stopped
        if result.best.bits_per_byte is None:
            raise RunError(f"{name}: no trial of its sweep has a loss", "give a lower rate to begin with, or --sweep 0")
        with machine_errors(self.folder):
            if (self.folder / FOLDER).exists():
                remove(self.folder / FOLDER)
        if len(result.trials) > before:
            edge = ", at the edge of what was tried" if at_edge(result) else ""
            say(f"{name}: rate {result.best.rate:.3g}, warm-up {result.best.warmup:.0%}{edge}")
        return None

    def _one(self, number: int, rate: float, warmup: float, say: Say, watch: Watch) -> Trial | int:
        """Train for the trial's budget and judge; return the number of the signal that stopped it, if one did."""
        steps = steps_in(self.budget, self.recipe, self.speed)
        folder = self.folder / FOLDER / f"trial-{number}"
        with training_in(scheduled(self.recipe, steps, rate, warmup), self.texts.trials, folder) as training:
            steps = training.recipe.training.steps
            try:
                if stopped := training.rehearse(watch).signal:
                    return stopped
            except RunError as error:
                say(error.message)
                return Trial(rate, warmup, steps, 0, 0.0, None)
            bits = training.bits_per_byte(self.texts.choosing_ids(), self.texts.choosing_size)
            tokens, seconds = time_and_tokens(training.folder.records())
        return Trial(rate, warmup, steps, tokens, seconds, bits if bits < float("inf") else None)


def noted(result: SweepResult, keep: Callable[[], None], trial: Trial) -> str:
    """Write down what a trial reached, and return it in words."""
    result.trials.append(trial)
    keep()
    if trial.bits_per_byte is None:
        return "it came apart"
    return f"{trial.bits_per_byte:.3f} bits per byte after {trial.seconds:.1f} s"
