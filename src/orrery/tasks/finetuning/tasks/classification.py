"""Classification: one label for a text or for two."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from orrery.tasks.finetuning.tasks import Task, register

if TYPE_CHECKING:
    from orrery.data.rows.labelled import Labelled
    from orrery.language_model.model import LanguageModel
    from orrery.tasks.finetuning.findings import Findings

BATCH = 32
"""Texts answered at once."""


@register
class Classification(Task):
    """One label of several for each text, or for each pair of texts."""

    kind: ClassVar[str] = "classification"
    source = "labelled"
    objective = "classification"
    columns = ("text", "pair", "label")
    head = "sequence"

    @classmethod
    def texts(cls, source: Any) -> Iterable[tuple[str, ...]]:
        """Return the text of each row, or its two."""
        return ((row.text,) if row.pair is None else (row.text, row.pair) for row in source.train)

    @classmethod
    def findings(cls, lm: "LanguageModel", source: Any, length: int, done: Any = None) -> "Findings":
        """Return accuracy, F1 and calibration, the confusions and the worst mistakes; floors by counting words."""
        from orrery.scores import calibration, classification
        from orrery.tasks.finetuning.findings import Findings, label_names

        rows, names = source.held_back, label_names(lm, "sequence")
        found = probabilities(lm, rows, names, done)
        gold = [str(row.target) for row in rows]
        said = [names[max(range(len(names)), key=each.__getitem__)] for each in found]
        numbers = [names.index(label) for label in gold]
        labels, counts = classification.confusion(said, gold)
        return Findings(
            scores=(
                classification.accuracy(said, gold),
                classification.f1(said, gold, "macro"),
                classification.matthews(said, gold),
                calibration.calibration_error(found, numbers),
                calibration.negative_log_likelihood(found, numbers),
            ),
            examples=f"{len(rows):,} texts held back",
            floors=floors(source.train, rows, gold),
            confusion=([str(label) for label in labels], counts.tolist()),
            bins=calibration.reliability(found, numbers),
            mistakes=mistakes(rows, gold, said, found),
            by_label=[
                (str(each.label), each.precision, each.recall, each.f1, int(each.support))
                for each in classification.by_label(said, gold)
            ],
        )


def inputs(rows: "Sequence[Labelled]") -> list[Any]:
    """Return rows as the pipeline takes them."""
    return [row.text if row.pair is None else {"text": row.text, "text_pair": row.pair} for row in rows]


def probabilities(
    lm: "LanguageModel", rows: "Sequence[Labelled]", names: Sequence[str], done: Any = None
) -> list[list[float]]:
    """Return what the model gives each label, in the order of ``names``."""
    from orrery.tasks.pipelines import pipeline

    ask = pipeline("text-classification", lm, batch_size=BATCH)
    answers = ask(inputs(rows), top_k=None, truncation=True, done=done)
    tables = [{each["label"]: each["score"] for each in answer} for answer in answers]
    return [[table[name] for name in names] for table in tables]


def floors(train: "Sequence[Labelled]", rows: "Sequence[Labelled]", gold: Sequence[str]) -> list[tuple[str, Any]]:
    """Return the accuracy of the most frequent label and of words counted."""
    from orrery.scores.classification import accuracy
    from orrery.tasks.finetuning.tasks._counting import NaiveBayes, most_frequent

    labels = [str(row.target) for row in train]
    counting = NaiveBayes([_joined(row) for row in train], labels)
    return [
        ("the most frequent label", accuracy([most_frequent(labels)] * len(gold), gold)),
        ("naive Bayes over words and pairs of words", accuracy([counting.predict(_joined(row)) for row in rows], gold)),
    ]


def mistakes(
    rows: "Sequence[Labelled]", gold: Sequence[str], said: Sequence[str], found: Sequence[Sequence[float]]
) -> list[Any]:
    """Return the texts that were called something else, the surest first."""
    from orrery.tasks.finetuning.findings import Mistake

    wrong = [n for n in range(len(rows)) if said[n] != gold[n]]
    wrong.sort(key=lambda n: -max(found[n]))
    return [Mistake(_joined(rows[n]), gold[n], said[n], max(found[n])) for n in wrong]


def _joined(row: "Labelled") -> str:
    return row.text if row.pair is None else f"{row.text}\n{row.pair}"
