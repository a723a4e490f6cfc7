"""The trials of a sweep carried out: short trainings, each judged on training text that none of them learned."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from orrery.checkpoints.disk import machine_errors, remove
from orrery.errors import RunError
from orrery.evaluation.floors import model_bits_per_byte
from orrery.recipes.config import Recipe
from orrery.runs.assemble import assemble
from orrery.studies.compare.budgets import Budget
from orrery.studies.compare.findings import SweepResult, Trial
from orrery.studies.compare.learning import Say, Watch, scheduled, settled, steps_in, time_and_tokens, train
from orrery.studies.compare.sweep import Sweep, at_edge
from orrery.studies.compare.texts import Texts
from orrery.training.folder import open_run_folder
from orrery.training.precision import find_device

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

    def run(self, found: SweepResult, say: Say, watch: Watch, keep: Callable[[], None]) -> int | None:
        """Do the trials that ``found`` lacks, and ``keep`` after each; return the signal that stopped it, if one did.

        Raises:
            RunError: every trial came apart.
        """
        name, centre = self.recipe.name, self.recipe.training.optimizer.rate
        before = len(found.trials)
        while (chosen := self.sweep.next(found.trials, centre)) is not None:
            number = len(found.trials) + 1
            label = f"{name}: trial {number} of {self.sweep.trials}, rate {chosen[0]:.3g}, warm-up {chosen[1]:.0%}"
            trial = self._one(number, *chosen, watch)
            if isinstance(trial, int):
                return trial
            found.trials.append(trial)
            keep()
            say(f"{label}: {judgement(trial)}")
        if found.best.bits_per_byte is None:
            raise RunError(f"{name}: no trial of its sweep has a loss", "give a lower rate to begin with, or --sweep 0")
        with machine_errors(self.folder):
            if (self.folder / FOLDER).exists():
                remove(self.folder / FOLDER)
        if len(found.trials) > before:
            edge = ", at the edge of what was tried" if at_edge(found) else ""
            say(f"{name}: rate {found.best.rate:.3g}, warm-up {found.best.warmup:.0%}{edge}")
        return None

    def _one(self, number: int, rate: float, warmup: float, watch: Watch) -> Trial | int:
        """Train for the trial's budget and judge; return the number of the signal that stopped it, if one did."""
        steps = steps_in(self.budget, self.recipe, self.speed)
        folder = self.folder / FOLDER / f"trial-{number}"
        with open_run_folder(folder, resume=True) as opened:
            recipe = settled(scheduled(self.recipe, steps, rate, warmup), folder)
            assembly = assemble(recipe, self.texts.trials)
            reporter = watch()
            try:
                if stopped := train(replace(assembly.parts, validation=None), recipe, opened, reporter):
                    return stopped
            except RunError as error:
                reporter.line(error.message)
                return Trial(rate, warmup, recipe.training.steps, 0, 0.0, None)
            model, texts = assembly.parts.model.eval(), self.texts
            device = find_device(recipe.training.device)
            length = recipe.batches.length
            bits = model_bits_per_byte(model, texts.choosing_ids(), length, texts.choosing_size, device)
            tokens, seconds = time_and_tokens(opened.records())
        return Trial(rate, warmup, recipe.training.steps, tokens, seconds, bits if bits < float("inf") else None)


def judgement(trial: Trial) -> str:
    """Return what a trial reached, in words."""
    if trial.bits_per_byte is None:
        return "it came apart"
    return f"{trial.bits_per_byte:.3f} bits per byte after {trial.seconds:.1f} s"
