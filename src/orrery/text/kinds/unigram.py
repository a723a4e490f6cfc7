"""Unigram, as a kind of tokenizer; the algorithm is in ``text/algorithms/subwords.py``."""

from orrery.text.algorithms import subwords
from orrery.text.kinds._kind import TokenizerKind, register


@register
class Unigram(TokenizerKind):
    """The likeliest pieces, each with its probability."""

    kind = "unigram"

    train = staticmethod(subwords.train_unigram)
