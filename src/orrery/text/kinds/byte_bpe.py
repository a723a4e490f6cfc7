"""Byte-level byte-pair encoding, as a kind of tokenizer; the algorithm is in ``text/algorithms/bpe.py``."""

from orrery.text.algorithms import bpe
from orrery.text.kinds._kind import TokenizerKind, register


@register
class ByteBpe(TokenizerKind):
    """Frequent pairs of bytes are merged; any text comes back exactly."""

    kind = "byte_bpe"
    least = bpe.BYTES + 1
    holds = "256 bytes"
    exact = True

    train = staticmethod(bpe.train)
