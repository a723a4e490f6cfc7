"""Bits per byte of held-back text: a model, and what compresses it without any model of language."""

import lzma
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from orrery.data.batches.token_windows import SequentialWindows
from orrery.errors import DataError
from orrery.objectives.causal import CausalLanguageModel
from orrery.training.step import to_device

Ids = NDArray[np.uint32]
ROWS = 16
SMALLEST_DICTIONARY = 1 << 16


def compression_floor(content: bytes, primed_with: bytes | None = None) -> float:
    """Return the bits per byte that xz (preset 9, extreme) needs for ``content``.

    Primed, it has seen another text before, as a trained model has: the size of both together less the size
    of the first alone. The dictionary is as long as both, so that nothing seen is forgotten.
    """
    if not content:
        raise DataError("an empty text has no bits per byte", "give it a text that is not empty")
    before = primed_with or b""
    dictionary = max(len(before) + len(content), SMALLEST_DICTIONARY)
    added = _size(before + content, dictionary) - (_size(before, dictionary) if before else 0)
    return 8 * added / len(content)


def _size(content: bytes, dictionary: int) -> int:
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "dict_size": dictionary}]
    return len(lzma.compress(content, format=lzma.FORMAT_RAW, filters=filters))


def joined(documents: Sequence[Ids]) -> Ids:
    """Return documents that end in the end token one after another, with one end token in front."""
    return np.concatenate([documents[0][-1:], *documents])


@torch.no_grad()
def model_bits_per_byte(model: Any, documents: Sequence[Ids], length: int, size: int, device: str = "cpu") -> float:
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
