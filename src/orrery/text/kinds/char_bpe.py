"""Byte-pair encoding of characters, as a kind of tokenizer; the algorithm is in ``text/algorithms/subwords.py``."""

from orrery.text.algorithms import subwords
from orrery.text.kinds._kind import TokenizerKind, register


@register
class CharacterBpe(TokenizerKind):
    """Frequent pairs of characters are merged."""

    kind = "char_bpe"

    train = staticmethod(subwords.train_bpe)
