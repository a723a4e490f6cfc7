"""``orrery sft``: a base model and conversations in, an assistant out."""

from typing import Annotated

from cyclopts import Parameter

from orrery.cli.methods import ONCE, RunOptions, asked_of, carry_out
from orrery.cli.places import DATA, MODEL_OR_RECIPE


def sft(
    model: Annotated[str, MODEL_OR_RECIPE],
    *overrides: Annotated[str, Parameter(allow_leading_hyphen=True)],
    train: Annotated[str | None, DATA] = None,
    val: Annotated[str | None, DATA] = None,
    run: RunOptions = ONCE,
) -> int:
    """Fine-tune a model on conversations (supervised fine-tuning): it learns what the assistant says in them.

    Rows hold messages (role, content), ShareGPT's conversations (from, value), turns (role, text), instruction and
    output, or texts with Human: and Assistant:; which it is, is found from their columns. They are rendered with the
    model's own chat template, else with chatml (--data.template). Length, steps and rate are found from the data;
    --print-config shows the recipe. orrery chat talks with what was trained.

    Args:
        model: The model to begin from: a run, a checkpoint, a Hugging Face folder, a GGUF file; or a recipe,
            which says all the rest.
        overrides: Keys of the recipe with new values, such as --training.steps 500 or --data.system "Be brief.".
        train: The conversations: JSON lines, JSON, CSV, Parquet, or a named set.
        val: Conversations to validate on; by default a tenth of the first prompts is held back.
        run: How often, from where on, and where to.
    """
    request = asked_of("sft", model, train, val, run)
    return carry_out(request, overrides, run, task="sft")
