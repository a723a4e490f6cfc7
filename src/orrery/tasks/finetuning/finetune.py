"""``orrery.finetune``: what the verb does, from Python."""

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from orrery.models.default_device import on_cpu_by_default
from orrery.recipes.read import flatten
from orrery.runs.going_on import asked_for, folder_of, where_begun
from orrery.settings import runs_folder
from orrery.tasks.finetuning.recipe import Mode, Request, recipe_for
from orrery.tasks.finetuning.seeds import Finetuned, with_seeds
from orrery.training.folder import CONFIG
from orrery.training.progress import Reporter, Silent, find_reporter
from orrery.training.signals import pass_on


@on_cpu_by_default
def finetune(
    task: str,
    model: str | Path | None = None,
    train: str | Path | None = None,
    val: str | Path | None = None,
    *,
    columns: Mapping[str, str] | None = None,
    mode: Mode = "full",
    blocks: int | None = None,
    scratch: bool = False,
    recipe: Mapping[str, Any] | None = None,
    seeds: int = 1,
    output: str | Path | None = None,
    resume: bool = False,
    overwrite: bool = False,
    quiet: bool = False,
) -> Finetuned:
    """Fine-tune a model on a task, score it, and write its report: the same as ``orrery finetune``.

    Args:
        task: its name: classification, multi-label, regression, tagging, question-answering, summarisation,
            translation, embedding, or one that a program has registered; or a recipe file with the key ``task``,
            which says all the rest; with ``resume`` the folder of a run.
        model: where it begins: a run, a checkpoint, a Hugging Face folder.
        train: the data to learn from: a file or a named set.
        val: the data to validate on; by default a tenth of the rows is held back, by their texts.
        columns: columns of the data, as the verb's flags name them; the others are found by their names.
        mode: what learns: the whole model, its head alone (``frozen``), or its last blocks too (``partial``).
        blocks: how many of the last blocks learn in the mode ``partial``.
        scratch: begin with fresh weights: only the shape and the tokenizer of the model are taken.
        recipe: keys of the recipe with new values, nested as in a file.
        seeds: train so many times with different seeds.
        output: the run's folder; by default ``runs/`` and a name after task and data.
        resume: continue from the newest sound checkpoint of the folder.
        overwrite: replace the run that is in the folder.
        quiet: show nothing.

    Raises:
        UsageError: the task, the model and the data do not fit together.
        DataError: the data cannot be read.
        ModelFileError: there is no model.
    """
    begin, learned, held_back = (None if each is None else str(each) for each in (model, train, val))
    folder = None if output is None else Path(output)
    home = folder_of(Path(task), folder) if resume else None
    if home is not None:
        home = Path(os.path.abspath(home))
        task, folder = str(home / CONFIG), home
    name = None if folder is None else folder.name
    request = Request(task, begin, learned, held_back, dict(columns or {}), mode, blocks, scratch, name)
    words = [f"--{key}={json.dumps(value)}" for key, value in flatten(dict(recipe or {})).items()]
    say = (lambda line: None) if quiet else print
    with where_begun(home, say):
        return _finetuned(request, words, folder, quiet, say, seeds=seeds, resume=resume, overwrite=overwrite)


def _finetuned(
    request: Request,
    words: list[str],
    folder: Path | None,
    quiet: bool,
    say: Callable[[str], None],
    **how: Any,
) -> Finetuned:
    """Fine-tune, once it is known which folder relative paths mean."""
    chosen = recipe_for(request, words, os.environ)

    def reporter() -> Reporter:
        return Silent() if quiet else find_reporter()

    done = with_seeds(
        chosen,
        folder or runs_folder() / chosen.name,
        reporter,
        say,
        inputs=[Path(each) for each in (request.task, request.model, request.train, request.val) if each],
        asked=None if request.file else asked_for(words, os.environ),
        **how,
    )
    pass_on(done.signal)
    return done
