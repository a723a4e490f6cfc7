"""``orrery reward``: a model and preferences in, one that gives conversations a number out."""

from typing import Annotated

from cyclopts import Parameter

from orrery.cli.methods import ONCE, RunOptions, asked_of, carry_out
from orrery.cli.places import DATA, MODEL_OR_RECIPE


def reward(
    model: Annotated[str, MODEL_OR_RECIPE],
    *overrides: Annotated[str, Parameter(allow_leading_hyphen=True)],
    train: Annotated[str | None, DATA] = None,
    val: Annotated[str | None, DATA] = None,
    run: RunOptions = ONCE,
) -> int:
    """Train a reward model on preferences (Bradley-Terry): a number for a conversation, larger where it is preferred.

    Rows hold prompt, chosen and rejected as texts or as messages; instruction, input, chosen and rejected; or chosen
    and rejected as whole conversations; a column margin says by how much. The model gets a head with one number in the
    place of its own, and is saved as transformers' ForSequenceClassification where its family has one. One first prompt
    in ten is held back with all its rows. In Python, orrery.load(RUN).rewards([messages, ...]) gives the numbers.

    Args:
        model: The model to begin from, a decoder or an encoder: a run, a checkpoint, a Hugging Face folder, a
            GGUF file; or a recipe, which says all the rest.
        overrides: Keys of the recipe with new values, such as --objective.centre 0.01 or --data.skip-bad 10.
        train: The preferences: JSON lines, JSON, CSV, Parquet, or a named set.
        val: Preferences to validate on; by default a tenth of the first prompts is held back.
        run: How often, from where on, and where to.
    """
    request = asked_of("reward", model, train, val, run)
    return carry_out(request, overrides, run, task="reward")
