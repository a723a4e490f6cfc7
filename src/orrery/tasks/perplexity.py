"""How well a decoder predicts a text: nats a token, perplexity, bits a byte."""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from orrery.data.batches import SequentialWindows
from orrery.errors import DataError, UsageError
from orrery.language_model.model import LanguageModel
from orrery.objectives.causal import CausalLanguageModel
from orrery.training.distributed import Alone
from orrery.training.evaluate import Totals, Validation, add_batch, measures
from orrery.training.precision import Precision


@torch.no_grad()
def evaluate_perplexity(
    lm: LanguageModel,
    texts: Sequence[str],
    *,
    length: int | None = None,
    batch_size: int = 16,
    done: Callable[[int], None] | None = None,
) -> dict[str, float]:
    """Return ``loss`` in nats a token, ``perplexity`` and ``bpb``, bits a byte of the texts.

    The texts stand one after another, each behind an end token as in training, and are read in windows without
    overlap: a window's first tokens have little before them.

    Args:
        lm: a decoder.
        texts: documents.
        length: tokens of a window, the context by default.
        batch_size: windows computed at once.
        done: told after each batch how many windows are done.

    Raises:
        DataError: the texts are empty.
        ModelFileError: a weight is no number, and so is the loss.
        UsageError: the model is no decoder, or a window is longer than its context.
    """
    if not lm.model.spec.writes or lm.model.spec.reads_source:
        raise UsageError("only a decoder gives each token a probability from those before it", "load a decoder")
    size = lm.context if length is None else length
    if not 1 <= size <= lm.context:
        raise UsageError(f"windows of {size:,} tokens, the context is {lm.context:,}", "choose a shorter --length")
    written = sum(len(text.encode()) for text in texts)
    if not written:
        raise DataError("the texts are empty", "give at least one character")
    windows = SequentialWindows(_stream(lm, texts), size, batch_size)
    bytes_per_token = written / (len(windows.ids) - 1)
    validation = Validation(windows, len(windows), CausalLanguageModel(), bytes_per_token)
    precision = Precision("float32", "plain", str(lm.device), torch.get_num_threads())  # the model's own dtype
    totals: Totals = {}
    for index in range(len(windows)):
        add_batch(totals, lm.model, validation, index, precision)
        if done is not None:
            done(min(windows.windows, (index + 1) * batch_size))
    found = measures(totals, validation, Alone())
    lm.refuse_no_number(found["val/loss"])
    return {name.removeprefix("val/"): value for name, value in found.items()}


def _stream(lm: LanguageModel, texts: Sequence[str]) -> NDArray[np.uint32]:
    """Return an end token, then each text with its own."""
    end = lm.tokenizer.special("end")
    rows = lm.tokenizer.encode_batch(texts)
    return np.concatenate([np.array([end], np.uint32), *(np.asarray([*row, end], np.uint32) for row in rows)])
