"""``orrery.pipeline``: a task by name, over a folder or a model that is loaded."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from orrery.errors import UsageError
from orrery.language_model.load import load
from orrery.language_model.model import LanguageModel
from orrery.tasks._task import TASKS, Learned, Task
from orrery.tasks.pipelines._pipeline import Pipeline

TRANSLATION = re.compile(r"translation_(\w+)_to_(\w+)")
"""The task that names both languages."""


def pipeline(
    task: str,
    model: LanguageModel | str | Path,
    *,
    device: str | int = "auto",
    dtype: str = "auto",
    batch_size: int = 1,
    say: Callable[[str], None] = lambda line: None,
    **settings: Any,
) -> Pipeline:
    """Return a task over a model, as ``transformers.pipeline`` does: ``orrery.pipeline("ner", "runs/tags")("Ada")``.

    Args:
        task: ``text-classification`` (``sentiment-analysis``), ``token-classification`` (``ner``),
            ``question-answering``, ``fill-mask``, ``feature-extraction`` (a vector for each token), ``embedding`` (one
            for a text), ``zero-shot-classification``, ``text-generation``, ``text2text-generation``,
            ``summarization``, ``translation`` (``translation_en_to_de``), ``image-classification``, ``image-to-text``,
            ``image-feature-extraction``, ``zero-shot-image-classification``, what ``orrery.finetune`` calls one of
            these (``classification``, ``tagging``), or the name of one that a program has registered.
        model: a model that is loaded, or what ``orrery.load`` takes.
        device: where a folder is loaded to: ``auto``, ``cpu``, ``cuda``, ``cuda:1``; a number is a GPU, -1 the CPU.
        dtype: what its weights become, as in ``orrery.load``.
        batch_size: rows computed at once.
        say: told what was chosen while a folder is loaded.
        settings: of the task, for every call.

    Raises:
        UsageError: no such task, a model that it cannot use, or a setting that it lacks.
    """
    kind, name = to_ask(task)
    if isinstance(model, LanguageModel):
        if (device, dtype) != ("auto", "auto"):
            raise UsageError("device and dtype belong to a folder that is loaded", "give them to orrery.load")
        return kind(model, name, batch_size, **settings)
    return kind(load(model, _device(device), dtype, say), name, batch_size, **settings)


def to_ask(task: str) -> tuple[type[Pipeline], str]:
    """Return what answers a task of a name, and what messages call it: as it was asked for, or as transformers does.

    Raises:
        UsageError: no task of this name answers.
    """
    name = task.replace("-", "_")
    name = "translation" if TRANSLATION.fullmatch(name) else name
    answering = next((each for each in _tasks(name) if name in (each.kind, *each.names)), None)
    if answering is not None and issubclass(answering, Learned) and answering.asked_as:
        return to_ask(answering.asked_as.replace("_", "-"))
    if answering is None or not issubclass(answering, Pipeline):
        names = {each for one in _tasks() if issubclass(one, Pipeline) for each in (one.kind, *one.names)}
        known = ", ".join(sorted(each.replace("_", "-") for each in names))
        raise UsageError(f"there is no pipeline for {str(task)[:100]!r}", f"known: {known}, translation_xx_to_yy")
    return answering, answering.names[0].replace("_", "-") if name == answering.kind and answering.names else task


def _tasks(first: str = "") -> Iterator[type[Task]]:
    """Yield the tasks, and first of all one that is called by its kind: the others need not be imported then."""
    names = TASKS.names()
    yield from (TASKS.find(name) for name in sorted(names, key=lambda name: name != first))


def _device(device: str | int) -> str:
    """Return a device by its name; transformers also takes the number of a GPU."""
    if isinstance(device, str):
        return device
    return "cpu" if device < 0 else f"cuda:{device}"
