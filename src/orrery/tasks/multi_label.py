"""Classification with any number of labels for a text."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from orrery.scores import classification
from orrery.tasks._task import Learned, register
from orrery.tasks.classification import Classification, probabilities
from orrery.tasks.finetuning.findings import Findings, Mistake, label_names

if TYPE_CHECKING:
    from orrery.language_model.model import LanguageModel


@register
class MultiLabel(Learned):
    """Any number of labels for each text: a list, or names between commas."""

    kind = "multi_label"
    source = "labelled"
    objective = "multi_label"
    asked_as = "classification"
    columns = ("text", "pair", "labels")
    head = "sequence"

    @classmethod
    def data(cls, train: str, val: str | None, columns: Mapping[str, str]) -> dict[str, Any]:
        """Return the section ``data`` with the column of the labels, whose usual name is ``labels``."""
        return super().data(train, val, {"labels": "labels", **columns})

    @classmethod
    def texts(cls, source: Any) -> Iterable[tuple[str, ...]]:
        """Return the text of each row, or its two."""
        return Classification.texts(source)

    @classmethod
    def metrics(cls, source: Any) -> list[dict[str, Any]]:
        """Return the F1 of all labels together."""
        return [{"kind": "f1", "average": "micro", "head": cls.head}]

    @classmethod
    def findings(cls, lm: "LanguageModel", source: Any, length: int, done: Any = None) -> Findings:
        """Return F1 and accuracy of the sets of labels whose probability is above one half."""
        rows, names = source.held_back, label_names(lm, "sequence")
        by_row = probabilities(lm, rows, names, done)
        gold = [tuple(sorted(row.target or ())) for row in rows]
        said = [tuple(sorted(name for name, p in zip(names, each, strict=True) if p > 0.5)) for each in by_row]
        wrong = [n for n in range(len(rows)) if set(said[n]) != set(gold[n])]
        wrong.sort(key=lambda n: -len(set(said[n]) ^ set(gold[n])))
        usual = [name for name, count in source.labels.items() if count > len(source.train) / 2]
        return Findings(
            scores=(
                classification.f1(said, gold, "micro", names),
                classification.f1(said, gold, "macro", names),
                classification.accuracy(said, gold),
            ),
            examples=f"{len(rows):,} texts held back",
            floors=[("labels of most texts", classification.f1([tuple(usual)] * len(gold), gold, "micro", names))],
            mistakes=[Mistake(rows[n].text, ", ".join(gold[n]), ", ".join(said[n])) for n in wrong],
            by_label=[
                (str(each.label), each.precision, each.recall, each.f1, int(each.support))
                for each in classification.by_label(said, gold)
            ],
        )
