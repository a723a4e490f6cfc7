"""What a run of stages would do, stage by stage, before any of them runs."""

from pathlib import Path

from orrery.data.sources import SOURCES
from orrery.errors import UsageError
from orrery.studies.stages.recipe import Stage, Staged


def plan(staged: Staged, folder: Path) -> str:
    """Return the plan of every stage: what it begins from, learns from and does, and where it will lie.

    Sizes and memory of a stage are known once those are trained that it begins from.

    Raises:
        UsageError: a stage is no recipe.
    """
    return "\n".join(
        line
        for number, stage in enumerate(staged.stages, start=1)
        for line in (f"stage {number} of {len(staged.stages)}: {stage.name}", *_lines(stage, folder))
    )


def _lines(stage: Stage, folder: Path) -> list[str]:
    """Return the plan of one stage."""
    recipe = stage.recipe(folder)
    if recipe.data.kind not in SOURCES.names():
        raise UsageError(f"stages.{stage.name}: no data of kind {recipe.data.kind}", "name a kind of data")
    batches, steps = recipe.batches, recipe.training.steps
    size = f"{batches.size:,} rows" if batches.size else f"{batches.tokens:,} positions"
    begun = recipe.model.begin or f"{recipe.model.family or recipe.model.spec} with fresh weights"
    rows = (
        ("begins from", begun),
        ("objective", f"{getattr(recipe.objective, 'kind', 'causal')}"),
        ("training data", recipe.data.described),
        ("batch", f"{size} of {batches.length:,}"),
        ("run", f"{steps:,} steps, {steps * batches.positions:,} positions"),
        *((("rewards", ", ".join(reward.label for reward in recipe.rewards)),) if recipe.rewards else ()),
        ("folder", str(folder / stage.name)),
    )
    return [f"  {name:<14}{value}" for name, value in rows]
