"""A task of one's own, whole: whether a text is of one label, learned from labelled rows, asked, scored."""

from collections.abc import Iterable, Sequence
from typing import Any

from pydantic import Field

from orrery.nn.heads import SequenceHead
from orrery.scores.classification import accuracy
from orrery.tasks import Findings, InputRow, Learned, Mistake, Pipeline, PipelineSettings, register
from orrery.tasks.pipelines import ask, head_of, names_of, softmax, whole, wide


class SpottingSettings(PipelineSettings):
    """Which label is looked for, and how sure the model must be to say that it is there."""

    label: str = Field("capital", description="The label that is looked for.")
    sure: float = Field(0.5, ge=0, le=1, description="The probability above which it is there.")


@register
class Spotting(Learned, Pipeline):
    """Say of each text whether it is of one label.

    The model learns all labels of its data, as in classification; a label's share of the softmax says how sure it is.
    """

    kind = "spotting"
    source = "labelled"
    objective = "classification"
    columns = ("text", "label")
    head = "sequence"
    Settings = SpottingSettings
    said = "found"

    @classmethod
    def findings(cls, lm: Any, source: Any, length: int, done: Any = None) -> Findings:
        """Return how often yes and no are right; the floor says no to every text."""
        rows, wanted = source.held_back, SpottingSettings().label
        answers = cls(lm, cls.kind, batch_size=16, truncation=True)([row.text for row in rows], done=done)
        said, gold = [answer["is"] for answer in answers], [row.target == wanted for row in rows]
        wrong = [n for n in range(len(rows)) if said[n] != gold[n]]
        return Findings(
            scores=[accuracy(said, gold)],
            examples=f"{len(rows)} texts held back",
            floors=[("always no", accuracy([False] * len(gold), gold))],
            mistakes=[Mistake(rows[n].text, str(gold[n]), str(said[n]), answers[n]["score"]) for n in wrong],
        )

    @classmethod
    def fits(cls, lm: Any) -> bool:
        """Say whether a model has a head for classes."""
        return any(isinstance(head, SequenceHead.Spec) for head in lm.model.spec.heads.values())

    def rows(self, item: str, settings: SpottingSettings) -> Sequence[InputRow]:
        """Return the one row of a text."""
        return [whole(self.lm, item, truncation=settings.truncation)]

    def ask(self, rows: Sequence[InputRow], settings: SpottingSettings) -> Sequence[float]:
        """Return the probability of the label in each row of a batch."""
        name, head = head_of(self.lm, SequenceHead.Spec, "sequence", settings.head, self.task)
        probabilities = softmax(wide(ask(self.lm, rows, name)[0]))
        return [float(row[names_of(head).index(settings.label)]) for row in probabilities]

    def answer(self, item: str, rows: Sequence[InputRow], outputs: Sequence[float], settings: SpottingSettings) -> Any:
        """Return yes or no, and how sure that is."""
        return {"is": outputs[0] > settings.sure, "score": round(outputs[0], 4)}

    def lines(self, item: str, answer: Any) -> Iterable[str]:
        """Return the line that the command line shows."""
        yield f"{'yes' if answer['is'] else 'no '} {answer['score']:.4f}  {item}"
