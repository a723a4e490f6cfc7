"""What is said at the end of a run, from its records."""

from typing import Any

from orrery.metrics import METRICS
from orrery.recipes.config import ExpectSettings, Recipe
from orrery.recipes.word_vectors import WordVectorRecipe


def conclusion(recipe: Recipe | WordVectorRecipe, records: list[dict[str, Any]]) -> list[str]:
    """Say what the record of the model that was kept holds of the recipe's expectation; nothing without one."""
    return [] if recipe.expect is None else [_compared(recipe, recipe.expect, of_the_final_model(recipe, records))]


def of_the_final_model(recipe: Recipe | WordVectorRecipe, records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the records up to that of the model which the run leaves: all, or those up to the best."""
    if not isinstance(recipe, Recipe) or recipe.training.final == "last":
        return records
    name = f"val/{recipe.decides}"
    sign = -1 if more_is_better(recipe, name) else 1
    values = {place: sign * record[name] for place, record in enumerate(records) if record.get(name) is not None}
    return records[: min(values, key=values.__getitem__) + 1] if values else records


def _compared(recipe: Recipe | WordVectorRecipe, expected: ExpectSettings, records: list[dict[str, Any]]) -> str:
    measured = [record[expected.metric] for record in records if expected.metric in record]
    if not measured:
        return f"{recipe.name}: {expected.metric} is not measured yet"
    value = measured[-1]
    if not isinstance(value, int | float):
        return f"{recipe.name}: {expected.metric} is no finite number, expected was {expected.bound}: missed"
    more = more_is_better(recipe, expected.metric)
    met = value >= expected.bound if more else value <= expected.bound
    bound = f"at {'least' if more else 'most'} {expected.bound}"
    return f"{recipe.name}: {expected.metric} {value:.4f}, expected {bound}: {'met' if met else 'missed'}"


def more_is_better(recipe: Recipe | WordVectorRecipe, metric: str) -> bool:
    """Say whether a metric of a recipe is one of which more is better."""
    measured = recipe.measured if isinstance(recipe, Recipe) else {}
    settings = measured.get(metric.removeprefix("val/"))
    return settings is not None and METRICS.class_of(settings).higher_is_better


def epochs(records: list[dict[str, Any]]) -> list[str]:
    """Say how often each corpus of a mixture was gone through, from the last record; nothing without a mixture."""
    by_corpus = {
        key.removeprefix("epochs/"): n
        for key, n in (records[-1] if records else {}).items()
        if key.startswith("epochs/")
    }
    return (
        ["epochs elapsed: " + ", ".join(f"{name} {count:.3f}" for name, count in by_corpus.items())]
        if by_corpus
        else []
    )
