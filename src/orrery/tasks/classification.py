"""One label of several for a text or for two: ``[{"label": ..., "score": ...}]``."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from orrery.language_model.pictures import reads_pictures
from orrery.nn.heads import SequenceHead
from orrery.schema.numbers import Positive
from orrery.scores import classification
from orrery.scores.classification import accuracy
from orrery.tasks._no_text import NO_TEXT
from orrery.tasks._task import Learned, register
from orrery.tasks.finetuning._counting import NaiveBayes, most_frequent
from orrery.tasks.finetuning._one_label import likeliest, one_label
from orrery.tasks.finetuning.findings import Findings, Mistake, label_names
from orrery.tasks.pipelines._heads import Scores, head_of, labels_of, wide
from orrery.tasks.pipelines._make import pipeline
from orrery.tasks.pipelines._picture_rows import PictureRow, ask_pictures, picture_row
from orrery.tasks.pipelines._pipeline import (
    Pipeline,
    PipelineSettings,
    field_of,
    refuse_other_fields,
    text_of,
)
from orrery.tasks.pipelines._rows import InputRow, ask, whole

if TYPE_CHECKING:
    from orrery.data.rows.labelled import Labelled
    from orrery.language_model.model import LanguageModel

BATCH = 32
"""Texts answered at once."""


class TextClassificationSettings(PipelineSettings):
    """``top_k`` labels a text, all where it is null; ``function_to_apply`` beside what the head's problem asks for."""

    top_k: Positive | Literal[""] | None = ""
    function_to_apply: Literal["softmax", "sigmoid", "none", "default"] | None = None


@register
class Classification(Learned, Pipeline):
    """One label of several for each text, or for each pair of texts.

    It learns a head over the row. The answer is ``softmax(z)`` of one label among several, ``sigmoid(z)`` of
    independent ones or of one alone, ``z`` of a number: which it is, the head's ``problem`` says, and the number of its
    labels where it says nothing. A pair of texts is ``{"text": ..., "text_pair": ...}``. As in transformers one text
    has a list for its answer, a list of texts one label each, and ``top_k`` makes each answer a list. A model that
    reads pictures takes a picture, such as a path, in the place of a text.
    """

    kind = "classification"
    names = ("text_classification", "sentiment_analysis")
    verb = "classify"
    route = "/v1/classify"
    said = "labels"
    source = "labelled"
    objective = "classification"
    columns = ("text", "pair", "label")
    head = "sequence"
    Settings = TextClassificationSettings

    @classmethod
    def texts(cls, source: Any) -> Iterable[tuple[str, ...]]:
        """Return the text of each row, or its two."""
        return ((row.text,) if row.pair is None else (row.text, row.pair) for row in source.train)

    @classmethod
    def findings(cls, lm: "LanguageModel", source: Any, length: int, done: Any = None) -> Findings:
        """Return accuracy, F1 and calibration, the confusions and the worst mistakes; floors by counting words."""
        rows, names = source.held_back, label_names(lm, "sequence")
        by_row = probabilities(lm, rows, names, done)
        gold = [str(row.target) for row in rows]
        said = likeliest(by_row, names)
        return one_label(
            by_row,
            gold,
            names,
            lambda n: Mistake(_joined(rows[n]), gold[n], said[n], max(by_row[n])),
            more=[classification.matthews(said, gold)],
            examples=f"{len(rows):,} texts held back",
            floors=floors(source.train, rows, gold),
        )

    def __call__(self, inputs: Any, **settings: Any) -> Any:
        """Return the labels; see ``Pipeline``."""
        labels = super().__call__(inputs, **settings)
        return [labels] if isinstance(inputs, str) and "top_k" not in settings else labels

    def rows(self, item: Any, settings: TextClassificationSettings) -> Sequence[Any]:
        """Return the one row of a text, of a pair or of a picture."""
        if reads_pictures(self.lm.stored) is not None:
            return [picture_row(self.lm, item)]
        if not isinstance(item, Mapping):
            return [whole(self.lm, text_of(item, self.task), truncation=settings.truncation)]
        refuse_other_fields(item, ("text", "text_pair"), self.task)
        pair = field_of(item, "text_pair", self.task) if item.get("text_pair") is not None else None
        return [whole(self.lm, field_of(item, "text", self.task), pair, truncation=settings.truncation)]

    def ask(self, rows: Sequence[Any], settings: TextClassificationSettings) -> Sequence[Scores]:
        """Return the logits of each row."""
        name, _ = head_of(self.lm, SequenceHead.Spec, "sequence", settings.head, self.task)
        if isinstance(rows[0], PictureRow):
            return [wide(said) for said in ask_pictures(self.lm, rows, name)]
        return list(wide(ask(self.lm, rows, name)[0]))

    def answer(
        self, item: Any, rows: Sequence[InputRow], outputs: Sequence[Scores], settings: TextClassificationSettings
    ) -> Any:
        """Return the best label, or as many as ``top_k`` asks for."""
        _, spec = head_of(self.lm, SequenceHead.Spec, "sequence", settings.head, self.task)
        labels = labels_of(outputs[0], spec, settings.function_to_apply)
        return labels[0] if settings.top_k == "" else labels[: settings.top_k]

    @classmethod
    def fits(cls, lm: "LanguageModel") -> bool:
        """Say whether the model has a head for rows."""
        return any(isinstance(head, SequenceHead.Spec) for head in lm.model.spec.heads.values())

    def told(self, answer: Any) -> list[dict[str, Any]]:
        """Return the labels."""
        return answer or []

    def lines(self, item: Any, answer: Any) -> Iterator[str]:
        """Return a line with the labels, their probabilities, and the text."""
        yield labelled(item, self.told(answer))


def labelled(item: Any, labels: Sequence[Mapping[str, Any]]) -> str:
    """Return the line of a text and its labels."""
    shown = "  ".join(f"{label['label']} {label['score']:.4f}" for label in labels) or NO_TEXT
    return f"{shown}  {item['text'] if isinstance(item, Mapping) else item}"


def inputs(rows: "Sequence[Labelled]") -> list[Any]:
    """Return rows as the pipeline takes them."""
    return [row.text if row.pair is None else {"text": row.text, "text_pair": row.pair} for row in rows]


def probabilities(
    lm: "LanguageModel", rows: "Sequence[Labelled]", names: Sequence[str], done: Any = None
) -> list[list[float]]:
    """Return what the model gives each label, in the order of ``names``."""
    ask = pipeline("text-classification", lm, batch_size=BATCH)
    answers = ask(inputs(rows), top_k=None, truncation=True, done=done)
    tables = [{each["label"]: each["score"] for each in answer} for answer in answers]
    return [[table[name] for name in names] for table in tables]


def floors(train: "Sequence[Labelled]", rows: "Sequence[Labelled]", gold: Sequence[str]) -> list[tuple[str, Any]]:
    """Return the accuracy of the most frequent label and of words counted."""
    labels = [str(row.target) for row in train]
    counting = NaiveBayes([_joined(row) for row in train], labels)
    return [
        ("the most frequent label", accuracy([most_frequent(labels)] * len(gold), gold)),
        ("naive Bayes over words and pairs of words", accuracy([counting.predict(_joined(row)) for row in rows], gold)),
    ]


def _joined(row: "Labelled") -> str:
    return row.text if row.pair is None else f"{row.text}\n{row.pair}"
