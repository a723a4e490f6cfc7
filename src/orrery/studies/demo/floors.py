"""What the demo's model is compared with: counts of bytes and of tokens, and a compressor."""

import math
from collections.abc import Sequence

import numpy as np

from orrery.evaluation.floors import Ids, compression_floor, joined
from orrery.models.ngram import ByteNgram, TokenNgram
from orrery.studies.demo.findings import Measure


def floors(train: bytes, held_back: bytes) -> list[Measure]:
    """Return what the model must be below: two counts of bytes, learned from ``train``, and xz without it."""
    return [
        Measure("byte unigram", ByteNgram(1).fit(train).bits_per_byte(held_back), "check"),
        Measure("byte trigram", ByteNgram(3).fit(train).bits_per_byte(held_back), "check"),
        Measure("xz", compression_floor(held_back), "check"),
    ]


def aims(
    train: bytes, held_back: bytes, train_ids: Sequence[Ids], held_back_ids: Sequence[Ids], vocabulary: int
) -> list[Measure]:
    """Return what a small model may or may not reach: counts of the same tokens, and xz that has seen ``train``."""
    counts = TokenNgram(3, vocabulary).fit(joined(train_ids))
    nats = -np.log(counts.probabilities(joined(held_back_ids))[1:]).sum()
    return [
        Measure("token trigram", float(nats) / math.log(2) / len(held_back), "aim"),
        Measure("xz primed with training text", compression_floor(held_back, train), "aim"),
    ]
