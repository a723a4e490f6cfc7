"""Character bigrams, as a kind of tokenizer; the algorithm is in ``text/algorithms/bigrams.py``."""

from orrery.text.algorithms import bigrams
from orrery.text.kinds._kind import TokenizerKind, register


@register
class Bigram(TokenizerKind):
    """Frequent words stay whole, all others are cut into pairs of characters."""

    kind = "bigram"
    vocabulary = 8192

    train = staticmethod(bigrams.train)
