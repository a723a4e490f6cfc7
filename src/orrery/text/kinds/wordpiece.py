"""WordPiece, as a kind of tokenizer; the algorithm is in ``text/algorithms/wordpiece.py``."""

from orrery.text.algorithms import wordpiece
from orrery.text.kinds._kind import TokenizerKind, register


@register
class WordPiece(TokenizerKind):
    """Pairs are merged by what they add to the likelihood; spaces are dropped."""

    kind = "wordpiece"

    train = staticmethod(wordpiece.train)
