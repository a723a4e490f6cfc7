"""``orrery reward``: a model and preferences in, one that gives conversations a number out."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from orrery.cli.methods import asked_of, carry_out
from orrery.cli.numbers import COUNT


def reward(
    model: str,
    *overrides: Annotated[str, Parameter(allow_leading_hyphen=True)],
    train: str | None = None,
    val: str | None = None,
    seeds: Annotated[int, COUNT] = 1,
    resume: bool = False,
    overwrite: bool = False,
    print_config: bool = False,
    output: Path | None = None,
) -> int:
    """Train a reward model on preferences (Bradley-Terry): a number for a conversation, larger where it is preferred.

    Rows hold prompt, chosen and rejected as texts or as messages; instruction, input, chosen and rejected; or chosen
    and rejected as whole conversations; a column margin says by how much. The model gets a head with one number in the
    place of its own, and is saved as transformers' ForSequenceClassification where its family has one. One first prompt
    in ten is held back with all its rows. In Python, orrery.load(RUN).rewards([messages, ...]) gives the numbers.

    Args:
        model: The model to begin from, a decoder or an encoder: a run, a checkpoint, a Hugging Face folder; or a
            recipe, which says all the rest.
        overrides: Keys of the recipe with new values, such as --objective.centre 0.01 or --data.skip-bad 10.
        train: The preferences: JSON lines, JSON, CSV, Parquet, or a named set.
        val: Preferences to validate on; by default a tenth of the first prompts is held back.
        seeds: Train so many times with different seeds, and say mean and spread.
        resume: Continue from the newest sound checkpoint of the folder.
        overwrite: Replace the run that is in the folder; it stays until the new one has its first checkpoint.
        print_config: Print the recipe, and stop.
        output: The run's folder; by default runs/ and the recipe's name.
    """
    asked = asked_of("reward", model, train, val, output)
    return carry_out(
        asked,
        overrides,
        task="reward",
        seeds=seeds,
        resume=resume,
        overwrite=overwrite,
        print_config=print_config,
        output=output,
    )
