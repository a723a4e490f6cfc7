"""The plan of a comparison: who is compared on what, and with which budget."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orrery.compare.models import COUNTS, recipe_of, refuse_unknown
from orrery.errors import UsageError
from orrery.training.config import Recipe
from orrery.training.recipes import check_recipe, plain, set_dotted


@dataclass(frozen=True)
class Plan:
    """Who is compared on what: built-in models of ``parameters`` each, or recipes as they are; a budget for each.

    ``base`` names text, tokenizer, batches and seed. Exactly one of ``steps`` and ``minutes`` is the budget.
    """

    base: Recipe
    models: Sequence[str]
    parameters: int
    steps: int | None = None
    minutes: float | None = None
    recipes: Sequence[Recipe] = ()

    def settings(self) -> dict[str, Any]:
        """Return what a comparison that is continued must find again."""
        shared = {key: plain(self.base)[key] for key in ("data", "tokenizer", "batches", "seed")}
        budget = {"parameters": self.parameters, "steps": self.steps, "minutes": self.minutes}
        return {**shared, **budget, "models": [*self.models, *(recipe.name for recipe in self.recipes)]}

    def check(self) -> None:
        """Refuse what cannot be compared.

        Raises:
            UsageError: no model, an unknown one, no budget or two, recipes with other texts or tokenizers.
        """
        refuse_unknown(self.models)
        names = [*self.models, *(recipe.name for recipe in self.recipes)]
        if not names or len(set(names)) < len(names):
            raise UsageError(f"cannot compare {', '.join(names) or 'no models'}", "give models with different names")
        if (self.steps is None) == (self.minutes is None) or (self.steps or self.minutes or 0) <= 0:
            raise UsageError("a comparison needs one budget for all", "give --minutes or --steps, above zero")
        for recipe in self.recipes:
            for key in ("data", "tokenizer"):
                if getattr(recipe, key) != getattr(self.base, key):
                    message = f"{recipe.name}: its {key} is not that of {self.base.name}"
                    raise UsageError(message, f"only models on the same {key} can be compared")


def recipes(plan: Plan, vocabulary: int, tokenizer: Path) -> dict[str, Recipe | None]:
    """Return the recipe of each model by its name, with the shared tokenizer; none for what is only counted."""
    found: dict[str, Recipe | None] = {}
    for name in plan.models:
        made = None if name == COUNTS else recipe_of(name, plan.base, vocabulary, plan.parameters)
        found[name] = None if made is None else changed(made, "tokenizer", {"file": str(tokenizer)})
    return found | {recipe.name: changed(recipe, "tokenizer", {"file": str(tokenizer)}) for recipe in plan.recipes}


def changed(recipe: Recipe, key: str, value: Any) -> Recipe:
    """Return a recipe with one dotted key changed."""
    values = plain(recipe)
    set_dotted(values, key, value)
    return check_recipe(values, recipe.name)
