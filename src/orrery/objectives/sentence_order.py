"""Sentence order prediction beside masked language modelling: do the parts of a row stand in the order of the text."""

from typing import Literal

from orrery.objectives import register
from orrery.objectives._pair_label import PairLabel
from orrery.schema.numbers import Part
from orrery.schema.section import Section


@register
class SentenceOrder(PairLabel):
    """``masked - log p(in_order | row)`` in nats, over the chosen tokens and over the rows.

    Lan et al. 2020, section 3.1: half of the pairs are swapped (``batches.kind: ordered_pairs``). A batch has
    ``ids``, ``token_types`` and ``real`` [B L], and ``in_order`` [B]; the head ``next`` has label 0 where it is 1, as
    published ones do. ``probability`` and ``whole_words`` are those of `MaskedLanguageModel`.
    """

    class Settings(Section):
        """Masked tokens, and whether the parts stand in their order; half of them are swapped."""

        kind: Literal["sentence_order"] = "sentence_order"
        probability: Part = 0.15
        whole_words: bool = False

    label = "in_order"
    needs = ("ids", "token_types", "real", "in_order")
    makes = ("ids", "targets")
