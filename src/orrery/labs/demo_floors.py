"""Bits per byte of held-back text: the model beside what needs no neural network."""

import math
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from orrery.data.batches import SequentialWindows
from orrery.evaluation.floors import compression_floor
from orrery.labs.demo_findings import Measure
from orrery.models.ngram import ByteNgram, TokenNgram
from orrery.objectives.causal import CausalLanguageModel
from orrery.training.step import to_device

Ids = NDArray[np.uint32]
ROWS = 16


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


def joined(documents: Sequence[Ids]) -> Ids:
    """Return documents that end in the end token one after another, with one end token in front."""
    return np.concatenate([documents[0][-1:], *documents])


@torch.no_grad()
def model_bits_per_byte(
    model: nn.Module, documents: Sequence[Ids], length: int, size: int, device: str = "cpu"
) -> float:
    """Return the bits that the model needs for each of ``size`` bytes, all documents together.

    Each document, which ends in the end token, is read from its own start behind an end token, in windows of
    ``length`` tokens that begin every ``length / 2``: every token counts once, and all but a document's first
    have at least half a window before them.
    """
    objective, nats = CausalLanguageModel(), 0.0
    for document in documents:
        windows = SequentialWindows(joined([document]), length, ROWS, max(1, length // 2))
        for batch in windows:
            terms = objective.loss(model, to_device(batch, device))
            nats += sum(float(term.sum) for term in terms.values())
    return nats / math.log(2) / size
