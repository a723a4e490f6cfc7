"""Regression: a number for a text or for two."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from orrery.scores import regression
from orrery.tasks._task import Learned, register
from orrery.tasks.classification import BATCH, Classification, inputs
from orrery.tasks.finetuning.findings import Findings, Mistake
from orrery.tasks.pipelines._make import pipeline

if TYPE_CHECKING:
    from orrery.language_model.model import LanguageModel


@register
class Regression(Learned):
    """A number for each text, or for each pair of texts; with the objective ``binary`` a share, as rerankers learn."""

    kind = "regression"
    source = "labelled"
    objective = "regression"
    objectives = ("binary",)
    asked_as = "classification"
    columns = ("text", "pair", "number")
    head = "sequence"

    @classmethod
    def data(cls, train: str, val: str | None, columns: Mapping[str, str]) -> dict[str, Any]:
        """Return the section ``data`` with the column of the number, whose usual name is ``score``."""
        return super().data(train, val, {"number": "score", **columns})

    @classmethod
    def texts(cls, source: Any) -> Iterable[tuple[str, ...]]:
        """Return the text of each row, or its two."""
        return Classification.texts(source)

    @classmethod
    def findings(cls, lm: "LanguageModel", source: Any, length: int, done: Any = None) -> Findings:
        """Return correlations and errors; the floor is the mean of the training rows."""
        rows = source.held_back
        answers = pipeline("text-classification", lm, batch_size=BATCH)(inputs(rows), truncation=True, done=done)
        said, gold = [each["score"] for each in answers], [float(row.target) for row in rows]
        mean = sum(float(row.target) for row in source.train) / len(source.train)
        wrong = sorted(range(len(rows)), key=lambda n: -abs(said[n] - gold[n]))
        return Findings(
            scores=(
                regression.squared_error(said, gold),
                regression.absolute_error(said, gold),
                regression.pearson(said, gold),
                regression.spearman(said, gold),
            ),
            examples=f"{len(rows):,} texts held back",
            floors=[("the mean of the training rows", regression.squared_error([mean] * len(gold), gold))],
            mistakes=[Mistake(rows[n].text, f"{gold[n]:g}", f"{said[n]:.3f}") for n in wrong],
        )
