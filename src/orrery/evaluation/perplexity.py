"""How well a decoder predicts a text: nats a token, perplexity, bits a byte."""

from collections.abc import Callable, Iterator, Sequence
from math import exp, fsum, log

from orrery.errors import DataError, UsageError
from orrery.language_model.likelihoods import Continuation, likelihoods
from orrery.language_model.model import LanguageModel
from orrery.language_model.texts import before_text, opening_of

LARGEST = 700
"""Nats a token whose perplexity is still a number."""


def evaluate_perplexity(
    lm: LanguageModel,
    texts: Sequence[str],
    *,
    length: int | None = None,
    batch_size: int = 16,
    done: Callable[[int], None] | None = None,
) -> dict[str, float]:
    """Return ``loss`` in nats a token, ``perplexity`` and ``bpb``, bits a byte of the texts.

    A tokenizer that puts tokens before a text puts them before each of these; without any the texts stand one after
    another, each behind an end token as in training. They are read in windows without overlap: a window's first tokens
    have little before them.

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
    bytes_read = sum(len(text.encode()) for text in texts)
    if not bytes_read:
        raise DataError("the texts are empty", "give at least one character")
    scored = likelihoods(lm.stored, windows_of(lm, texts, size), batch_size=batch_size, longest=size, done=done)
    nats, tokens = fsum(one.nats for one in scored), sum(one.tokens for one in scored)
    loss = -nats / max(1, tokens)
    return {"loss": loss, "perplexity": exp(min(loss, LARGEST)), "bpb": -nats / log(2) / bytes_read}


def windows_of(lm: LanguageModel, texts: Sequence[str], size: int) -> list[Continuation]:
    """Return texts in windows of ``size`` tokens that are read, no token scored twice."""
    return [window for before, ids in _documents(lm, texts) for window in _windows(before, ids, size)]


def _documents(lm: LanguageModel, texts: Sequence[str]) -> list[tuple[list[int], list[int]]]:
    """Return the ids of what is measured, each part with what stands before it.

    A tokenizer that puts tokens before a text puts them before each; without any the texts are one, each with the end
    token behind it.
    """
    rows, before = lm.tokenizer.encode_batch(texts), before_text(lm.stored)
    if opening_of(lm.tokenizer):
        return [(before, row) for row in rows]
    end = lm.tokenizer.special("end")
    return [(before, [id for row in rows for id in (*row, end)])]


def _windows(before: Sequence[int], ids: Sequence[int], size: int) -> Iterator[Continuation]:
    """Yield a document in windows of ``size`` tokens that are read, none of them twice."""
    every = (*before, *ids)
    for start in range(0, len(every) - 1, size):
        given = len(before) if start == 0 else 1
        own = Continuation(tuple(every[start : start + given]), tuple(every[start + given : start + size + 1]))
        if own.ids:
            yield own
