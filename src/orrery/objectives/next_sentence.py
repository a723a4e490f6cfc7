"""Next sentence prediction beside masked language modelling: does the second part of a row follow the first."""

from typing import Literal

from orrery.objectives import register
from orrery.objectives._pair_label import PairLabel
from orrery.schema.numbers import Part
from orrery.schema.section import Section


@register
class NextSentence(PairLabel):
    """``masked - log p(follows | row)`` in nats, over the chosen tokens and over the rows.

    Devlin et al. 2019, section 3.1: half of the second parts are of another document (``batches.kind:
    sentence_pairs``). A batch has ``ids``, ``token_types`` and ``real`` [B L], and ``follows`` [B]; the head ``next``
    has label 0 where it is 1, as published ones do. ``probability`` and ``whole_words`` are those of
    `MaskedLanguageModel`.
    """

    class Settings(Section):
        """Masked tokens, and whether the second part follows; half of the second parts are of another document."""

        kind: Literal["next_sentence"] = "next_sentence"
        probability: Part = 0.15
        whole_words: bool = False

    label = "follows"
    needs = ("ids", "token_types", "real", "follows")
    makes = ("ids", "targets")
