"""Characters, as a kind of tokenizer; the algorithm is in ``text/algorithms/characters.py``."""

from orrery.text.algorithms import characters
from orrery.text.kinds._kind import TokenizerKind, register


@register
class Character(TokenizerKind):
    """One id a character."""

    kind = "character"
    vocabulary = None

    train = staticmethod(characters.train)
