"""``orrery.pipeline``: a task by name, over a folder or a model that is loaded."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from orrery.errors import UsageError
from orrery.language_model.load import load
from orrery.language_model.model import LanguageModel
from orrery.tasks.pipelines._pipeline import PIPELINES, Pipeline

ALIASES = {"sentiment_analysis": "text_classification", "ner": "token_classification"}
"""Other names of tasks, as transformers has them."""

_TRANSLATION = re.compile(r"translation_\w+_to_\w+")


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
            ``question-answering``, ``fill-mask``, ``feature-extraction``, ``zero-shot-classification``,
            ``text-generation``, ``text2text-generation``, ``summarization``, ``translation``
            (``translation_en_to_de``), or the name of one that a program has registered.
        model: a model that is loaded, or what ``orrery.load`` takes.
        device: where a folder is loaded to: ``auto``, ``cpu``, ``cuda``, ``cuda:1``; a number is a GPU, -1 the CPU.
        dtype: what its weights become, as in ``orrery.load``.
        batch_size: rows computed at once.
        say: told what was chosen while a folder is loaded.
        settings: of the task, for every call.

    Raises:
        UsageError: no such task, a model that it cannot use, or a setting that it lacks.
    """
    name = task.replace("-", "_")
    name = "translation" if _TRANSLATION.fullmatch(name) else ALIASES.get(name, name)
    if name not in PIPELINES.names():
        known = ", ".join(sorted(found.replace("_", "-") for found in (*PIPELINES.names(), *ALIASES)))
        raise UsageError(f"there is no pipeline for {str(task)[:100]!r}", f"known: {known}, translation_xx_to_yy")
    if isinstance(model, LanguageModel):
        if (device, dtype) != ("auto", "auto"):
            raise UsageError("device and dtype belong to a folder that is loaded", "give them to orrery.load")
        return PIPELINES.find(name)(model, task, batch_size, **settings)
    return PIPELINES.find(name)(load(model, _device(device), dtype, say), task, batch_size, **settings)


def _device(device: str | int) -> str:
    """Return a device by its name; transformers also takes the number of a GPU."""
    if isinstance(device, str):
        return device
    return "cpu" if device < 0 else f"cuda:{device}"
