"""Sequence to sequence: each target token from the source and the true tokens before it."""

from typing import Literal

from orrery.objectives import register
from orrery.objectives._from_source import FromSource
from orrery.schema.numbers import Fraction
from orrery.schema.section import Section


@register
class SequenceToSequence(FromSource):
    """``-log p(y_t | x, y_<t)`` in nats, with the true ``y_<t`` whatever the model would have written.

    This is teacher forcing (Williams and Zipser 1989). A batch has ``source``, ``source_real``, ``ids`` (the start
    token, then the target) and ``targets`` (the target, then the end token), -100 where there is none; label smoothing
    is that of `CausalLanguageModel`.
    """

    class Settings(Section):
        """Prediction of each target token from the source and the true tokens before it."""

        kind: Literal["seq2seq"] = "seq2seq"
        label_smoothing: Fraction = 0.0

    needs = ("source", "ids", "targets")

    def __init__(self, label_smoothing: float = 0.0) -> None:
        self.label_smoothing = label_smoothing

    def evaluated(self) -> "SequenceToSequence":
        """Return the objective without label smoothing."""
        return SequenceToSequence()
