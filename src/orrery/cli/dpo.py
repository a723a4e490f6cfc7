"""``orrery dpo``: an assistant and preferences in, one that writes what is preferred out."""

from dataclasses import replace
from typing import Annotated, Literal

from cyclopts import Parameter

from orrery.cli.methods import ONCE, RunOptions, asked_of, carry_out
from orrery.cli.places import DATA, MODEL_OR_RECIPE


def dpo(
    model: Annotated[str, MODEL_OR_RECIPE],
    *overrides: Annotated[str, Parameter(allow_leading_hyphen=True)],
    train: Annotated[str | None, DATA] = None,
    val: Annotated[str | None, DATA] = None,
    loss: Literal["dpo", "dpo_norm", "ipo", "kto", "orpo", "simpo"] | None = None,
    run: RunOptions = ONCE,
) -> int:
    """Train a model on preferences (direct preference optimisation): chosen replies gain against rejected ones.

    Rows hold prompt, chosen and rejected as texts or as messages; instruction, input, chosen and rejected; chosen and
    rejected as whole conversations; or, for kto, prompt, completion and label. They are rendered with the model's own
    chat template, else with chatml (--data.template). One first prompt in ten is held back with all its rows. Length,
    steps and rate are found from the data; --print-config shows the recipe.

    Args:
        model: The model to begin from: a run, a checkpoint, a Hugging Face folder, a GGUF file; or a recipe,
            which says all the rest.
        overrides: Keys of the recipe with new values, such as --objective.beta 0.3 or --data.skip-bad 10.
        train: The preferences: JSON lines, JSON, CSV, Parquet, or a named set.
        val: Preferences to validate on; by default a tenth of the first prompts is held back.
        loss: What is learned: dpo by default; dpo_norm (of mean log ratios), ipo, kto (no pairs needed), orpo or simpo
            (both without a reference model).
        run: How often, from where on, and where to.
    """
    request = replace(asked_of("dpo", model, train, val, run), objective=loss)
    return carry_out(request, overrides, run, task="dpo")
