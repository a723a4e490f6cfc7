"""Tasks in the idiom of ``transformers.pipeline``, a file each; `register` makes known what a program defines."""

from typing import TYPE_CHECKING

from orrery.schema.lazy import lazily

if TYPE_CHECKING:
    from orrery.tasks.pipelines._make import pipeline
    from orrery.tasks.pipelines._pipeline import PIPELINES, Pipeline, PipelineSettings, register
    from orrery.tasks.pipelines._rows import Row

__all__ = ["PIPELINES", "Pipeline", "PipelineSettings", "Row", "pipeline", "register"]


__getattr__ = lazily(
    __name__,
    {
        "_make": ["pipeline"],
        "_pipeline": ["PIPELINES", "Pipeline", "PipelineSettings", "register"],
        "_rows": ["Row"],
    },
)
