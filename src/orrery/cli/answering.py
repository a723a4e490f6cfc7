"""What the verbs share that teach a model by its own answers."""

import os
from collections.abc import Sequence
from pathlib import Path

from orrery.cli.methods import RunOptions, asked_of, carry_out, gone_on, is_recipe, trained
from orrery.errors import UsageError


def learn(
    kind: str,
    model: str,
    overrides: Sequence[str],
    run: RunOptions,
    *,
    train: str | None,
    val: str | None,
    reward: Sequence[str],
) -> int:
    """Train and score what is asked for by ``orrery KIND MODEL --train FILE --reward NAME``, or by a recipe.

    Raises:
        UsageError: prompts or rewards are missing, or stand beside a recipe.
    """
    if train is None:
        model = gone_on(model, run)
    if is_recipe(model):
        if reward:
            raise UsageError(
                f"{model} says what an answer is worth, --reward has no place beside it", "change rewards:"
            )
        return carry_out(asked_of(kind, model, train, val, run), overrides, run, task=kind)
    if train is None:
        raise UsageError(f"{kind}: {model} answers which prompts?", "give --train FILE, or a recipe (.yaml)")
    if not reward and not any(word.lstrip("-").startswith("rewards") for word in overrides):
        raise UsageError(
            f"{kind}: what is an answer worth?", "give --reward NAME, such as arithmetic, exact, or a folder"
        )
    from orrery.tasks.finetuning.answering_recipe import answering_recipe

    name = run.output.name if run.output else None
    recipe = answering_recipe(kind, model, train, val, reward, overrides, os.environ, name)
    return trained(recipe, [Path(each) for each in (model, train, val) if each], run, overrides)
