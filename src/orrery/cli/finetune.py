"""``orrery finetune``: a model and labelled data in, a model that answers out."""

import os
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter, validators

from orrery.settings import runs_folder
from orrery.training.recipes import as_yaml


def finetune(
    task: str,
    *overrides: Annotated[str, Parameter(allow_leading_hyphen=True)],
    model: Annotated[str, Parameter(name="--from")],
    train: str,
    val: str | None = None,
    text: str | None = None,
    pair: str | None = None,
    label: str | None = None,
    labels: str | None = None,
    number: str | None = None,
    source: str | None = None,
    target: str | None = None,
    layer: str | None = None,
    words: str | None = None,
    tags: str | None = None,
    mode: Literal["full", "frozen", "partial"] = "full",
    blocks: int | None = None,
    scratch: bool = False,
    seeds: Annotated[int, Parameter(validator=validators.Number(gte=1))] = 1,
    resume: bool = False,
    overwrite: bool = False,
    print_config: bool = False,
    output: Path | None = None,
) -> int:
    """Fine-tune a model on a task.

    The tasks are classification (of a text or a pair), multi-label, regression, tagging, question-answering,
    summarisation, translation and embedding. What is not said is found from the data: columns by their names, labels,
    length, steps and rate; --print-config shows the recipe.

    Args:
        task: The name of the task.
        overrides: Keys of the recipe with new values, such as --training.steps 500.
        model: The model to begin from: a run, a checkpoint, a Hugging Face folder.
        train: The data to learn from: CSV, tab-separated, JSON lines, Parquet, CoNLL-U, BIO, or a named set.
        val: The data to validate on; by default each tenth row of the training data is held back.
        text: The column of the text.
        pair: The column of a second text.
        label: The column of the label.
        labels: The column of several labels.
        number: The column of the number.
        source: The column of what is read, where a text is written from another.
        target: The column of what is written.
        layer: The annotation of words in a CoNLL-U file: upos, xpos.
        words: The column with the words of a sentence.
        tags: The column with their labels.
        mode: What learns: all of the model, its new head alone (frozen), or its last blocks too (partial).
        blocks: How many of the last blocks learn in the mode partial.
        scratch: Begin with fresh weights: only the shape and the tokenizer of the model are taken.
        seeds: Train so many times with different seeds, and say mean and spread.
        resume: Continue from the newest sound checkpoint of the folder.
        overwrite: Replace the run that is in the folder; it stays until the new one has its first checkpoint.
        print_config: Print the recipe, and stop.
        output: The run's folder; by default runs/ and the recipe's name.
    """
    from orrery.finetuning.recipe import Request, recipe_for

    given = {
        "text": text, "pair": pair, "label": label, "labels": labels, "number": number, "source": source,
        "target": target, "layer": layer, "words": words, "tags": tags,
    }  # fmt: skip
    columns = {name: value for name, value in given.items() if value is not None}
    asked = Request(task, model, train, val, columns, mode, blocks, scratch, output.name if output else None)
    recipe = recipe_for(asked, overrides, os.environ)
    if print_config:
        print(as_yaml(recipe), end="")
        return 0
    from orrery.finetuning.run import finetune as run
    from orrery.training.progress import find_reporter

    done = run(
        task,
        recipe,
        output or runs_folder() / recipe.name,
        find_reporter,
        print,
        seeds=seeds,
        resume=resume,
        overwrite=overwrite,
        inputs=[Path(each) for each in (model, train, val) if each is not None],
    )
    return 128 + done.signal if done.signal else 0
