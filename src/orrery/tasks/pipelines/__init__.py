"""How tasks answer, in the idiom of ``transformers.pipeline``: settings, rows, heads, spans, entities, writing."""

from typing import TYPE_CHECKING

from orrery.schema.lazy import lazily

if TYPE_CHECKING:
    from orrery.tasks.pipelines._heads import head_of, names_of, sigmoid, softmax, wide
    from orrery.tasks.pipelines._make import pipeline
    from orrery.tasks.pipelines._pipeline import Pipeline, PipelineSettings, register
    from orrery.tasks.pipelines._rows import InputRow, ask, whole

__all__ = [
    "InputRow",
    "Pipeline",
    "PipelineSettings",
    "ask",
    "head_of",
    "names_of",
    "pipeline",
    "register",
    "sigmoid",
    "softmax",
    "whole",
    "wide",
]  # fmt: skip


__getattr__ = lazily(
    __name__,
    {
        "_heads": ["head_of", "names_of", "sigmoid", "softmax", "wide"],
        "_make": ["pipeline"],
        "_pipeline": ["Pipeline", "PipelineSettings", "register"],
        "_rows": ["InputRow", "ask", "whole"],
    },
)
