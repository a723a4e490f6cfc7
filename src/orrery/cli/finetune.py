"""``orrery finetune``: a model and labelled data in, a model that answers out."""

from dataclasses import asdict, dataclass
from typing import Annotated, Literal

from cyclopts import Parameter

from orrery.cli.methods import ONCE, RunOptions, carry_out
from orrery.cli.numbers import COUNT_OR_NONE
from orrery.cli.places import DATA, MODEL, TASK_OR_RECIPE


@Parameter(name="*")
@dataclass(frozen=True)
class ColumnOptions:
    """What is taken of the data; what is not named is found by its name."""

    text: Annotated[str | None, Parameter(help="The column of the text.")] = None
    pair: Annotated[str | None, Parameter(help="The column of a second text.")] = None
    label: Annotated[str | None, Parameter(help="The column of the label.")] = None
    labels: Annotated[str | None, Parameter(help="The column of several labels, or columns of 0 and 1: a,b.")] = None
    number: Annotated[str | None, Parameter(help="The column of the number.")] = None
    source: Annotated[str | None, Parameter(help="The column of what is read, where a text is written.")] = None
    target: Annotated[str | None, Parameter(help="The column of what is written.")] = None
    layer: Annotated[str | None, Parameter(help="The annotation of words in a CoNLL-U file: upos, xpos.")] = None
    words: Annotated[str | None, Parameter(help="The column with the words of a sentence.")] = None
    tags: Annotated[str | None, Parameter(help="The column with their labels.")] = None


FOUND = ColumnOptions()
"""Nothing is named."""


def finetune(
    task: Annotated[str, TASK_OR_RECIPE],
    *overrides: Annotated[str, Parameter(allow_leading_hyphen=True)],
    base: Annotated[str | None, MODEL, Parameter(name="--from")] = None,
    train: Annotated[str | None, DATA] = None,
    val: Annotated[str | None, DATA] = None,
    columns: ColumnOptions = FOUND,
    mode: Literal["full", "frozen", "partial"] = "full",
    blocks: Annotated[int | None, COUNT_OR_NONE] = None,
    scratch: bool = False,
    run: RunOptions = ONCE,
) -> int:
    """Fine-tune a model on a task, or train a recipe that names one, and score it.

    The tasks are classification (of a text or a pair), multi-label, many-labels (thousands of them), regression,
    tagging, question-answering, summarisation, translation, embedding, image-classification, image-segmentation,
    object-detection, captioning, contrast (of pictures and texts), next-item (which makes its own model where none is
    named) and sft (orrery sft). What is not said is found from the data: columns by their names, labels, length, steps
    and rate; --print-config shows the recipe.

    Args:
        task: The name of the task, or a recipe with the key task, which says all the rest.
        overrides: Keys of the recipe with new values, such as --training.steps 500.
        base: The model to begin from: a run, a checkpoint, a Hugging Face folder, a GGUF file.
        train: The data to learn from: CSV, TSV, JSON lines, Parquet, CoNLL-U, BIO, fastText, MovieLens, or a named set.
        val: The data to validate on; by default a tenth of the training data is held back, by the texts.
        columns: What is taken of the data.
        mode: What learns: all of the model, its new head alone (frozen), or its last blocks too (partial).
        blocks: How many of the last blocks learn in the mode partial.
        scratch: Begin with fresh weights: only the shape and the tokenizer of the model are taken.
        run: How often, from where on, and where to.
    """
    from orrery.tasks.finetuning.recipe import Request

    named = {name: value for name, value in asdict(columns).items() if value is not None}
    request = Request(task, base, train, val, named, mode, blocks, scratch, run.output.name if run.output else None)
    return carry_out(request, overrides, run)
