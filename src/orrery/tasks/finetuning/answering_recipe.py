"""A recipe for learning from one's own answers: length, batch, steps and rate found from the prompts and the model."""

import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from orrery.data.sources import SOURCES
from orrery.errors import UsageError
from orrery.recipes.config import ModelSettings, Recipe
from orrery.recipes.read import check_recipe, flatten, overridden
from orrery.rewards import REWARDS, RewardSettings
from orrery.runs.begin import base_of
from orrery.schema.registry import settings_of
from orrery.tasks._task import to_learn
from orrery.tasks.finetuning.recipe import named_after

RATE, MOST_RATE = 1e-5, 3e-4
"""For a model as wide as GPT-2's smallest; a narrower one learns in larger steps."""
SIZE, SAMPLES, STEPS, LONGEST = 64, 8, 200, 64
"""Answers of a step, answers to a prompt, steps, and tokens of an answer, where nothing else is asked for."""
MEASURED = 500
"""Prompts whose tokens are counted to choose the length: those with the most characters."""
PASSES: Mapping[str, Mapping[str, int]] = {"ppo": {"minibatches": 2, "passes": 2}}
"""How many steps are made of a rollout where it is more than one."""


def answering_recipe(
    kind: str,
    model: str,
    train: str,
    val: str | None,
    rewards: Sequence[str],
    overrides: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
    name: str | None = None,
) -> Recipe:
    """Return the recipe of the task ``kind`` (``ppo``, ``grpo``, ``rloo``) that fits the prompts and the model.

    Args:
        kind: the task, called as its objective is.
        model: where it begins.
        train: the prompts: a file or a named set.
        val: prompts to measure on; by default a tenth of them is held back.
        rewards: names of rewards, or folders of reward models.
        overrides: keys of the recipe with new values, as flags.
        environment: of the process, whose ``ORRERY_`` keys count too.
        name: of the run.

    Raises:
        UsageError: no reward is named, or there is none of a name, or the model cannot answer.
        DataError: the prompts cannot be read.
        ModelFileError: there is no model.
    """
    task = to_learn(kind)
    base = base_of(ModelSettings.model_validate({"from": model}))
    assert base is not None
    if base.stored.tokenizer is None:
        raise UsageError(f"{base.stored.folder} has no tokenizer", "put its tokenizer.json into the folder")
    chosen = flatten(overridden({}, overrides, environment))
    context = base.stored.model.spec.context
    writing = {"max_new_tokens": chosen.get("data.max_new_tokens", min(LONGEST, max(1, context // 2)))}
    writing |= {key: chosen[f"data.{key}"] for key in ("prompt", "template") if f"data.{key}" in chosen}
    data = {**task.data(train, val, {}), **writing}
    source_class = SOURCES.find(task.source)
    settings: Any = settings_of(source_class).model_validate(data)
    source = source_class.read(settings)
    _, lengths = task.lengths(source, base.stored, MEASURED)
    answer = settings.max_new_tokens
    prompt = max(lengths) - answer
    if "data.max_new_tokens" not in chosen:
        answer = max(1, min(answer, context - prompt))
        data["max_new_tokens"] = answer
    values = {
        "name": name or f"{kind}-{named_after(train)}",
        "task": kind,
        "model": {"from": model},
        "data": {**data, "samples": SAMPLES, **PASSES.get(kind, {})},
        "objective": {"kind": task.objective},
        "rewards": [reward_section(each) for each in rewards],
        **_training(min(context, 8 * math.ceil((prompt + answer) / 8)), base.stored.model.spec.width, chosen),
    }
    return check_recipe(overridden(values, overrides, environment or os.environ), train)


def reward_section(named: str) -> dict[str, Any]:
    """Return the section of a reward that a flag names: a kind, or the folder of a reward model.

    Raises:
        UsageError: it is neither.
    """
    if named in REWARDS.names():
        return {"kind": named}
    if Path(named).is_dir():
        return {"kind": "reward_model", "model": named}
    message = f"--reward {named[:80]!r} is neither a reward nor the folder of a reward model"
    raise UsageError(message, f"rewards: {', '.join(REWARDS.names())}; one with settings stands in a recipe")


def reward_settings(named: str) -> RewardSettings:
    """Return the settings of a reward that a flag names; errors as in ``reward_section``."""
    section = reward_section(named)
    try:
        section_read: Any = settings_of(REWARDS.find(section["kind"])).model_validate(section)
    except ValidationError as error:
        missing = ", ".join(str(each["loc"][0]) for each in error.errors() if each["loc"])
        raise UsageError(
            f"--reward {named} needs settings: {missing}", "name a reward without, such as exact"
        ) from None
    settings: RewardSettings = section_read
    return settings


def _training(length: int, width: int, chosen: Mapping[str, Any]) -> dict[str, Any]:
    """Return batches, steps, rate and when to measure; what follows from the steps follows those that are chosen."""
    steps = chosen.get("training.steps", STEPS)
    steps = steps if type(steps) is int and steps > 0 else STEPS
    every = max(1, steps // 10)
    rate = float(f"{min(MOST_RATE, RATE * 768 / width):.1e}")
    return {
        "batches": {"kind": "rollouts", "length": length, "size": SIZE},
        "training": {
            "steps": steps,
            "precision": "float32",
            "optimizer": {"kind": "adamw", "rate": rate, "betas": [0.9, 0.95], "weight_decay": 0.0},
            "schedule": {"kind": "constant", "warmup": steps // 20},
        },
        "evaluation": {"every": every, "batches": 4},
        "checkpoints": {"every": every, "keep": 1},
        "logging": {"every": max(1, steps // 100)},
    }
