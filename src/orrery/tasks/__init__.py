"""Classes, entities, answers, translations and other tasks, a file each: fine-tuned on, asked, scored; `register`."""

from typing import TYPE_CHECKING

from orrery.schema.lazy import lazily

if TYPE_CHECKING:
    from orrery.tasks._task import TASKS, Learned, Task, register
    from orrery.tasks.finetuning.findings import Findings, Mistake
    from orrery.tasks.pipelines import Pipeline, PipelineSettings, Row, pipeline

NO_TEXT = "(no text)"
"""In the place of an answer to an input that has nothing to be answered."""

__all__ = [
    "NO_TEXT", "TASKS", "Findings", "Learned", "Mistake", "Pipeline", "PipelineSettings", "Row", "Task", "pipeline",
    "register",
]  # fmt: skip


__getattr__ = lazily(
    __name__,
    {
        "_task": ["TASKS", "Learned", "Task", "register"],
        "finetuning.findings": ["Findings", "Mistake"],
        "pipelines": ["Pipeline", "PipelineSettings", "Row", "pipeline"],
    },
)
