"""The plan of a comparison: who is compared on what, with which budgets and seeds, and what is tried before."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orrery.errors import UsageError
from orrery.recipes.config import Recipe
from orrery.recipes.read import plain
from orrery.studies.compare.budgets import Budget
from orrery.studies.compare.findings import BESIDE, HAND_SET, OWN, SWEPT
from orrery.studies.compare.models import COUNTS, recipe_of, refuse_unknown
from orrery.studies.compare.sweep import Sweep
from orrery.studies.training import changed


@dataclass(frozen=True)
class ProbeOptions:
    """Which probes are made of every built-in model, and how many steps those learn that a probe trains."""

    names: Sequence[str] = ()
    steps: int = 600


@dataclass(frozen=True)
class ComparisonPlan:
    """Who is compared on what: built-in models of ``parameters`` each, or recipes as they are; budgets for each.

    ``base`` names text, tokenizer and batches. ``sweep`` finds the rates of the built-in models, with
    ``sweep_recipes`` of recipes too; without one they are set by hand. ``hand_set`` trains what is swept with the
    rate set by hand as well, with the least and the greatest budget and the first seed.
    """

    base: Recipe
    models: Sequence[str]
    parameters: int
    budgets: Sequence[Budget]
    seeds: Sequence[int]
    recipes: Sequence[Recipe] = ()
    sweep: Sweep | None = None
    sweep_recipes: bool = False
    hand_set: bool = False
    probing: ProbeOptions = ProbeOptions()

    def settings(self) -> dict[str, Any]:
        """Return what a comparison that is continued must find again, but for what may be more (`GROWING`)."""
        shared = {key: plain(self.base)[key] for key in ("data", "tokenizer", "batches", "training", "objective")}
        return {
            **shared,
            "parameters": self.parameters,
            "unit": self.budgets[0].unit,
            "budgets": [budget.amount for budget in self.budgets],
            "seeds": list(self.seeds),
            "sweep": None if self.sweep is None else self.sweep.settings(max(self.budgets)),
            "sweep_recipes": self.sweep_recipes,
            "hand_set": self.hand_set,
            "models": [*self.models, *(recipe.name for recipe in self.recipes)],
            "probes": list(self.probing.names),
            "probe_steps": self.probing.steps,
        }

    def check(self) -> None:
        """Refuse what cannot be compared.

        Raises:
            UsageError: no model, an unknown one, budgets or seeds given twice, recipes with other texts or tokenizers.
        """
        refuse_unknown(self.models)
        names = [*self.models, *(recipe.name for recipe in self.recipes)]
        if not names or len(set(names)) < len(names):
            raise UsageError(f"cannot compare {', '.join(names) or 'no models'}", "give models with different names")
        for what, given in (("--seeds", self.seeds), ("budgets", [budget.amount for budget in self.budgets])):
            if len(set(given)) < len(given):
                raise UsageError(f"{what}: one of {', '.join(map(str, given))} is named twice", "name each once")
        if self.sweep is not None:
            self.sweep.check()
        for recipe in self.recipes:
            self._check_recipe(recipe)

    def _check_recipe(self, recipe: Recipe) -> None:
        for key in ("data", "tokenizer"):
            if getattr(recipe, key) != getattr(self.base, key):
                message = f"{recipe.name}: its {key} is not that of {self.base.name}"
                raise UsageError(message, f"only models on the same {key} can be compared")
        if recipe.training.final == "best" or recipe.evaluation.patience is not None:
            key = "training.final best" if recipe.training.final == "best" else "evaluation.patience"
            message = f"{recipe.name}: {key} chooses on the text that the table is measured on"
            raise UsageError(message, "leave it out of a recipe that is compared")

    def rate_from(self, name: str) -> str:
        """Return where the learning rate of a model comes from."""
        own = any(recipe.name == name for recipe in self.recipes)
        if self.sweep is not None and (self.sweep_recipes or not own):
            return SWEPT
        return OWN if own else HAND_SET


@dataclass(frozen=True)
class Job:
    """One training: who learns with which budget, seed and rate; what is only counted has none of them."""

    name: str
    recipe: Recipe | None
    budget: Budget | None = None
    seed: int | None = None
    rate_from: str | None = None

    @property
    def key(self) -> tuple[Any, ...]:
        """What tells it from others, as in `Entry.key`."""
        return self.name, self.budget and self.budget.amount, self.seed, self.rate_from == BESIDE

    @property
    def place(self) -> Path:
        """The folder of its run inside that of the comparison."""
        assert self.budget is not None
        more = "-hand-set" if self.rate_from == BESIDE else ""
        return Path(self.name) / f"{self.budget.place}-seed-{self.seed}{more}"


def jobs(plan: ComparisonPlan, compared: dict[str, Recipe | None]) -> list[Job]:
    """Return all trainings: the least budget first, and within each seed by seed, so that what is done compares."""
    trainings: list[Job] = []
    budgets = sorted(plan.budgets)
    for budget in budgets:
        for seed in plan.seeds:
            for name, recipe in compared.items():
                if recipe is not None:
                    trainings.append(Job(name, recipe, budget, seed, plan.rate_from(name)))
                elif (budget, seed) == (budgets[0], plan.seeds[0]):
                    trainings.append(Job(name, None))
        if plan.hand_set and budget in (budgets[0], budgets[-1]):
            trainings += [
                Job(name, recipe, budget, plan.seeds[0], BESIDE)
                for name, recipe in compared.items()
                if recipe is not None and plan.rate_from(name) == SWEPT
            ]
    return trainings


def recipes(plan: ComparisonPlan, vocabulary: int, tokenizer: Path) -> dict[str, Recipe | None]:
    """Return the recipe of each model by its name, with the shared tokenizer; none for what is only counted."""
    by_name: dict[str, Recipe | None] = {}
    for name in plan.models:
        made = None if name == COUNTS else recipe_of(name, plan.base, vocabulary, plan.parameters)
        by_name[name] = None if made is None else changed(made, tokenizer={"file": str(tokenizer)})
    return by_name | {recipe.name: changed(recipe, tokenizer={"file": str(tokenizer)}) for recipe in plan.recipes}
