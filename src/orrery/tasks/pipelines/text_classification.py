"""The class of a text, or of two: ``[{"label": ..., "score": ...}]``."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from orrery.errors import UsageError
from orrery.nn.heads import SequenceHead
from orrery.schema.numbers import Positive
from orrery.tasks.pipelines._heads import Scores, head_of, names_of, sigmoid, softmax, wide
from orrery.tasks.pipelines._pipeline import (
    Pipeline,
    PipelineSettings,
    field_of,
    refuse_other_fields,
    register,
    text_of,
)
from orrery.tasks.pipelines._rows import Row, ask, whole

FUNCTIONS = {"softmax": softmax, "sigmoid": sigmoid, "none": lambda logits: logits}
"""What makes scores of logits."""


class TextClassificationSettings(PipelineSettings):
    """``top_k`` labels a text, all where it is null; ``function_to_apply`` beside what the head's problem asks for."""

    top_k: Positive | Literal[""] | None = ""
    function_to_apply: Literal["softmax", "sigmoid", "none", "default"] | None = None


@register
class TextClassification(Pipeline):
    """``softmax(z)`` of one label among several, ``sigmoid(z)`` of independent ones or of one alone, ``z`` of a number.

    Which it is, the head's ``problem`` says, and the number of its labels where it says nothing. A pair of texts is
    ``{"text": ..., "text_pair": ...}``. As in transformers one text has a list for its answer, a list of texts one
    label each, and ``top_k`` makes each answer a list.
    """

    kind = "text_classification"
    Settings = TextClassificationSettings

    def __call__(self, inputs: Any, **settings: Any) -> Any:
        """Return the labels; see ``Pipeline``."""
        found = super().__call__(inputs, **settings)
        return [found] if isinstance(inputs, str) and "top_k" not in settings else found

    def rows(self, item: Any, settings: TextClassificationSettings) -> Sequence[Row]:
        """Return the one row of a text or of a pair."""
        if not isinstance(item, Mapping):
            return [whole(self.lm, text_of(item, self.task), truncation=settings.truncation)]
        refuse_other_fields(item, ("text", "text_pair"), self.task)
        pair = field_of(item, "text_pair", self.task) if item.get("text_pair") is not None else None
        return [whole(self.lm, field_of(item, "text", self.task), pair, truncation=settings.truncation)]

    def ask(self, rows: Sequence[Row], settings: TextClassificationSettings) -> Sequence[Scores]:
        """Return the logits of each row."""
        name, _ = head_of(self.lm, SequenceHead.Spec, "sequence", settings.head, self.task)
        return list(wide(ask(self.lm, rows, name)[0]))

    def answer(
        self, item: Any, rows: Sequence[Row], found: Sequence[Scores], settings: TextClassificationSettings
    ) -> Any:
        """Return the best label, or as many as ``top_k`` asks for."""
        _, spec = head_of(self.lm, SequenceHead.Spec, "sequence", settings.head, self.task)
        scores = FUNCTIONS[self._function(spec, settings)](found[0])
        names = names_of(spec)
        order = sorted(range(len(names)), key=lambda number: -float(scores[number]))
        labels = [{"label": names[number], "score": float(scores[number])} for number in order]
        return labels[0] if settings.top_k == "" else labels[: settings.top_k]

    def _function(self, spec: Any, settings: TextClassificationSettings) -> str:
        """Return which function makes the scores."""
        if settings.function_to_apply not in (None, "default"):
            return str(settings.function_to_apply)
        if spec.problem == "regression":
            return "none"
        if spec.labels < 1:
            raise UsageError("this head has no labels", "choose another with head=")
        return "sigmoid" if spec.problem == "multi_label_classification" or spec.labels == 1 else "softmax"
