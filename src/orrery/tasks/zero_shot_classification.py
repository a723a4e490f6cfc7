"""Which of the labels that a caller names fit a text, by a model of entailment."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from orrery.errors import UsageError
from orrery.nn.heads import SequenceHead
from orrery.schema.numbers import Positive
from orrery.tasks._task import register
from orrery.tasks.classification import labelled
from orrery.tasks.pipelines._heads import Scores, head_of, names_of, softmax, wide
from orrery.tasks.pipelines._pipeline import Pipeline, PipelineSettings, text_of
from orrery.tasks.pipelines._rows import InputRow, ask, room_of, row, too_long


class ZeroShotClassificationSettings(PipelineSettings):
    """The labels, a list or a text with commas; the sentence that each becomes; whether several may be true.

    ``top_k`` labels are told, all where it is null.
    """

    candidate_labels: list[str] | str | None = None
    hypothesis_template: str = "This example is {}."
    multi_label: bool = False
    top_k: Positive | None = None


@register
class ZeroShotClassification(Pipeline):
    """The text is the premise, the template with a label the hypothesis (Yin et al. 2019).

    ``softmax`` over the entailment logits of all labels; with ``multi_label``, or one label alone, ``softmax`` over
    the entailment and the contradiction logit of each. ``truncation`` cuts the text and never the hypothesis; without
    it a longer text is refused, where transformers cuts in silence.
    """

    kind = "zero_shot_classification"
    said = "labels"
    Settings = ZeroShotClassificationSettings

    def __call__(self, inputs: Any, candidate_labels: list[str] | str | None = None, **settings: Any) -> Any:
        """Return the labels, the most probable first; see ``Pipeline``."""
        if candidate_labels is not None:
            settings["candidate_labels"] = candidate_labels
        return super().__call__(inputs, **settings)

    def rows(self, item: Any, settings: ZeroShotClassificationSettings) -> Sequence[InputRow]:
        """Return a row for each label."""
        text, tokenizer = text_of(item, self.task), self.lm.tokenizer
        premise, room, rows = tokenizer.encode(text), room_of(self.lm, paired=True), []
        for label in labels_of(settings, self.task):
            hypothesis = tokenizer.encode(filled(settings.hypothesis_template, label))
            total = len(premise) + len(hypothesis)
            if len(hypothesis) >= room or (total > room and not settings.truncation):
                raise too_long(total + self.lm.context - room, self.lm.context)
            rows.append(row(self.lm, tokenizer.kept(premise, room - len(hypothesis)), hypothesis))
        return rows

    def ask(self, rows: Sequence[InputRow], settings: ZeroShotClassificationSettings) -> Sequence[Scores]:
        """Return the logits of each row."""
        name, _ = head_of(self.lm, SequenceHead.Spec, "sequence", settings.head, self.task)
        return list(wide(ask(self.lm, rows, name)[0]))

    def answer(
        self, item: Any, rows: Sequence[InputRow], outputs: Sequence[Scores], settings: ZeroShotClassificationSettings
    ) -> dict[str, Any]:
        """Return the labels in the order of their scores."""
        _, spec = head_of(self.lm, SequenceHead.Spec, "sequence", settings.head, self.task)
        entails, labels, logits = _entailment(names_of(spec)), labels_of(settings, self.task), np.stack(outputs)
        if settings.multi_label or len(labels) == 1:
            contradicts = spec.labels - 1 if entails == 0 else 0
            scores = softmax(logits[:, [contradicts, entails]])[:, 1]
        else:
            scores = softmax(logits[:, entails])
        order = [int(n) for n in reversed(scores.argsort())][: settings.top_k]
        return {
            "sequence": item,
            "labels": [labels[n] for n in order],
            "scores": [float(scores[n]) for n in order],
        }

    def told(self, answer: Any) -> list[dict[str, Any]]:
        """Return the labels as those of classes are given."""
        pairs = [] if answer is None else zip(answer["labels"], answer["scores"], strict=True)
        return [{"label": label, "score": score} for label, score in pairs]

    def lines(self, item: Any, answer: Any) -> Iterator[str]:
        """Return a line with the labels, their probabilities, and the text."""
        yield labelled(item, self.told(answer))


def labels_of(settings: Any, task: str) -> list[str]:
    """Return the labels that a caller names.

    Raises:
        UsageError: there is none.
    """
    given = settings.candidate_labels
    labels = [label.strip() for label in given.split(",")] if isinstance(given, str) else given or []
    labels = [label for label in labels if label]
    if not labels:
        raise UsageError(f"{task} has no candidate_labels", 'give candidate_labels=["sport", "art"]')
    return labels


def filled(template: str, label: str) -> str:
    """Return the template of a hypothesis with a label in it.

    Raises:
        UsageError: it has no place for one.
    """
    try:
        hypothesis = template.format(label)
    except (IndexError, KeyError, ValueError):
        hypothesis = template
    if hypothesis == template:
        raise UsageError(f"hypothesis_template {template!r} has no place for a label", "write {} where it stands")
    return hypothesis


def _entailment(names: Sequence[str]) -> int:
    """Return which label says that the hypothesis follows.

    Raises:
        UsageError: none is called so; transformers then takes the last one.
    """
    for number, name in enumerate(names):
        if name.lower().startswith("entail"):
            return number
    raise UsageError(
        f"none of the labels {', '.join(names)[:80]} begins with 'entail'",
        "load a model of entailment, or name its labels (id2label in config.json)",
    )
