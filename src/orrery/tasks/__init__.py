"""Classes, entities, answers, translations and other tasks, a file each: fine-tuned on, asked, scored; `register`."""

from typing import TYPE_CHECKING

from orrery.schema.lazy import lazily

if TYPE_CHECKING:
    from orrery.tasks._no_text import NO_TEXT
    from orrery.tasks._task import TASKS, Learned, Task, register
    from orrery.tasks.finetuning.findings import Findings, Mistake
    from orrery.tasks.pipelines import InputRow, Pipeline, PipelineSettings, pipeline

__all__ = [
    "NO_TEXT",
    "TASKS",
    "Findings",
    "InputRow",
    "Learned",
    "Mistake",
    "Pipeline",
    "PipelineSettings",
    "Task",
    "pipeline",
    "register",
]  # fmt: skip


__getattr__ = lazily(
    __name__,
    {
        "_no_text": ["NO_TEXT"],
        "_task": ["TASKS", "Learned", "Task", "register"],
        "finetuning.findings": ["Findings", "Mistake"],
        "pipelines": ["Pipeline", "PipelineSettings", "InputRow", "pipeline"],
    },
)
