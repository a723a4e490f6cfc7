"""Words, as a kind of tokenizer; the algorithm is in ``text/algorithms/words.py``."""

from orrery.text.algorithms import words
from orrery.text.kinds._kind import TokenizerKind, register


@register
class Word(TokenizerKind):
    """One id a word between whitespace."""

    kind = "word"
    vocabulary = None

    train = staticmethod(words.train)
