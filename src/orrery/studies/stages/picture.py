"""The picture of the stages: what each was taught with, and the numbers of its own run."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from orrery.reports.flow import Box, flow
from orrery.studies.stages.folder import Done
from orrery.studies.stages.recipe import Stage, Staged
from orrery.training.folder import RunFolder

SAID = (
    ("val/perplexity", "perplexity"),
    ("val/reward_accuracy", "pairs right"),
    ("val/reward", "reward"),
    ("train/kl_k3", "KL a token"),
    ("train/length", "tokens of an answer"),
    ("val/loss", "loss"),
)
"""What is said of a run, first and last, where it has measured it."""
SHOWN = 3
"""Measures in a box."""
TITLES = {
    "causal": "Pre-training", "sft": "Supervised fine-tuning", "reward": "Reward model", "ppo": "PPO", "dpo": "DPO",
    "grpo": "GRPO", "rloo": "RLOO",
}  # fmt: skip


def picture(staged: Staged, folder: Path, state: Mapping[str, Done]) -> str:
    """Return the stages as boxes in their order, with an arrow from each to those that begin from it.

    The three of Ouyang et al. 2022, figure 2 (fine-tuning, reward model, PPO), where the recipe has them, stand alone.
    """
    chosen = three(staged, folder) or list(staged.stages)
    boxes = [box(stage, folder, state.get(stage.name, Done())) for stage in chosen]
    names = [stage.name for stage in chosen]
    arrows = [
        (names.index(begun), number) for number, stage in enumerate(chosen) for begun in stage.begins if begun in names
    ]
    return flow(boxes, arrows, title="From imitation to reward: the stages of this run")


def three(staged: Staged, folder: Path) -> list[Stage]:
    """Return the last stages of supervised fine-tuning, reward model and PPO; nothing where one is missing."""
    by_objective = {_objective(stage, folder): stage for stage in staged.stages}
    kinds = ("sft", "reward", "ppo")
    return [by_objective[kind] for kind in kinds] if all(kind in by_objective for kind in kinds) else []


def box(stage: Stage, folder: Path, done: Done) -> Box:
    """Return what is said of a stage: its data, its steps and time, and what its run measured."""
    recipe = stage.recipe(folder)
    kind = _objective(stage, folder)
    records = RunFolder(folder / stage.name).records()
    lines = [
        f"stage {stage.name}",
        str(recipe.data.described),
        f"{done.steps:,} steps, {done.seconds / 60:.1f} minutes",
        *numbers(records),
    ]
    return Box(TITLES.get(kind, kind), lines)


def numbers(records: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the measures of a run, each as its first and last value."""
    changes = []
    for key, said in SAID:
        values = [record[key] for record in records if isinstance(record.get(key), int | float)]
        if values:
            changes.append(f"{values[0]:.3g} \u2192 {values[-1]:.3g} {said}")
    return changes[:SHOWN]


def _objective(stage: Stage, folder: Path) -> str:
    return str(getattr(stage.recipe(folder).objective, "kind", "causal"))
