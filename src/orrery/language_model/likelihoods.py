"""Log likelihoods of continuations after their contexts, many at once: what every choice between texts needs."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import fsum
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from orrery.errors import DataError, UsageError
from orrery.exchange.reading.read import Stored
from orrery.exchange.stored import (
    device_of,
    reads_apart,
    refuse_no_number,
    tokenizer_of,
    vocabulary,
)
from orrery.kernels.wide_products import wide_products
from orrery.language_model.texts import before_text, opening_of
from orrery.nn.embeddings import check_ids

TOKENS = 1 << 12
"""Rows are computed together that are no more tokens than these: more are no faster, and fill the memory."""
PIECE = 1 << 24
"""Logits held at once: 64 MiB in float32, whatever the length of a row and the vocabulary."""

Ids = tuple[int, ...]


@dataclass(frozen=True)
class Continuation:
    """What is scored, as ids.

    Attributes:
        before: the context; never empty.
        ids: the continuation; never empty.
    """

    before: Ids
    ids: Ids


@dataclass(frozen=True)
class Likelihood:
    """How likely a continuation is.

    Attributes:
        nats: the sum over its tokens of log p(token | all before).
        tokens: how many it has.
        greedy: whether each of them is the most probable one.
        cut: tokens of the context that did not fit.
    """

    nats: float
    tokens: int
    greedy: bool
    cut: int = 0


def continuation(stored: Stored, context: str, text: str) -> Continuation:
    """Return a context and what follows it as ids, split as lm_eval splits them.

    White space at the end of a context belongs to the continuation, and both are tokenised as one text behind the
    special tokens that the tokenizer puts before any. What lies behind the context's own tokens is the continuation;
    where its first letters merge with the context's last, it begins at the first token that differs, so that the
    likelihood is that of the text: log p(context + text) - log p(what both readings share), where lm_eval leaves
    letters out. An empty context is the token that begins a text, or the one that ends it.

    Raises:
        DataError: nothing is left to be scored.
        UsageError: the context is empty, and the tokenizer has neither token.
    """
    tokenizer = tokenizer_of(stored)
    own, together = tokenizer.encode(context.rstrip()), tokenizer.encode(context + text)
    shared = next(
        (n for n, (a, b) in enumerate(zip(own, together, strict=False)) if a != b), min(len(own), len(together))
    )
    before = opening_of(tokenizer) if shared else beginning(stored)
    split = Continuation((*before, *together[:shared]), tuple(together[shared:]))
    if not split.ids:
        raise DataError(f"{text!r} adds no token to what stands before it", "give at least one character")
    return split


def beginning(stored: Stored) -> list[int]:
    """Return what an empty context is. Raises `UsageError` where the tokenizer has no token for it."""
    start = before_text(stored)
    if not start:
        raise UsageError(
            "this tokenizer has neither a start nor an end token, so a text's first token has no probability",
            "give each text a context",
        )
    return start


def windows(ids: Sequence[int], before: Sequence[int], size: int) -> Iterator[Continuation]:
    """Yield a text in windows of ``size`` tokens that are read; each stands behind as much of the text as fits.

    The first begins behind ``before``; the last one is filled up with what stands before it, as in lm_eval.
    """
    every, lead = (*before, *ids), len(before) - 1
    begin, end = 0, max(1, size - lead)
    while begin < len(ids):
        end = min(end, len(ids))
        yield Continuation(tuple(every[max(0, end + lead - size) : begin + lead + 1]), tuple(ids[begin:end]))
        begin, end = end, end + size


def of_pairs(stored: Stored, pairs: Sequence[tuple[str, str]], **how: Any) -> list[Likelihood]:
    """Return the likelihood of each continuation behind its context; ``how`` as in `likelihoods`."""
    return likelihoods(stored, [continuation(stored, context, text) for context, text in pairs], **how)


def of_texts(stored: Stored, texts: str | Sequence[str], *, longest: int | None = None, **how: Any) -> list[float]:
    """Return the log likelihood of whole texts, in nats, each behind the token that begins one, in `windows`."""
    size, before, tokenizer = longest or stored.model.spec.context, beginning(stored), tokenizer_of(stored)
    several = [texts] if isinstance(texts, str) else texts
    parts = [list(windows(tokenizer.encode(text), before, size)) for text in several]
    each_likelihood = iter(likelihoods(stored, [one for own in parts for one in own], longest=longest, **how))
    return [fsum(next(each_likelihood).nats for _ in own) for own in parts]


@torch.no_grad()
def likelihoods(
    stored: Stored,
    continuations: Sequence[Continuation],
    *,
    batch_size: int = 64,
    longest: int | None = None,
    done: Callable[[int], None] | None = None,
) -> list[Likelihood]:
    """Return the likelihood of each continuation, in their order; equal rows are computed once.

    Rows are computed by length, the longest first, padded on the right. A context that does not fit loses its
    beginning, as in lm_eval.

    Args:
        stored: a decoder.
        continuations: what is scored.
        batch_size: rows computed at once; fewer where they are long.
        longest: tokens that are read at once; the model's context by default.
        done: told after each batch how many continuations are scored.

    Raises:
        DataError: an id outside the vocabulary, or a continuation longer than the context.
        ModelFileError: a weight is no number, and so is the likelihood.
        UsageError: the model is no decoder.
    """
    if not stored.model.spec.writes or reads_apart(stored):
        raise UsageError("only a decoder gives each token a probability from those before it", "load a decoder")
    context, size = longest or stored.model.spec.context, vocabulary(stored)
    by_row: dict[Ids, list[int]] = {}
    for place, one in enumerate(continuations):
        if len(one.ids) > context:
            message = f"a continuation of {len(one.ids):,} tokens, the context is {context:,}"
            raise DataError(message, "shorten it, or load a model with a longer context")
        by_row.setdefault((*one.before, *one.ids)[-(context + 1) :][:-1], []).append(place)
    rows = sorted(by_row, key=lambda row: (-len(row), row))
    check_ids(torch.tensor([id for one in continuations for id in (*one.before, *one.ids)] or [0]), size)
    by_place: dict[int, Likelihood] = {}
    start = 0
    while start < len(rows):
        count = max(1, min(batch_size, TOKENS // len(rows[start])))
        batch = rows[start : start + count]
        _score(stored, batch, [[(place, continuations[place]) for place in by_row[row]] for row in batch], by_place)
        start += count
        if done is not None:
            done(len(by_place))
    refuse_no_number(stored, fsum(one.nats for one in by_place.values()))
    return [by_place[place] for place in range(len(continuations))]


def _score(
    stored: Stored,
    rows: Sequence[Ids],
    continuations: Sequence[Sequence[tuple[int, Continuation]]],
    by_place: dict[int, Likelihood],
) -> None:
    """Compute some rows, and add what is asked of each to what is found; logits come and go in pieces."""
    ids_BL, real_BL = _padded(rows)
    device = device_of(stored)
    batch = {next(iter(stored.model.spec.inputs)): ids_BL.to(device)}
    batch |= {} if bool(real_BL.all()) else {"real": real_BL.to(device)}

    at_once = max(1, PIECE // (stored.model.spec.vocabulary or 1))

    def measured(head: Callable[[Tensor], Tensor], x_BLD: Tensor, real_BL: Tensor | None) -> None:
        for row, here, x_LD in zip(rows, continuations, x_BLD, strict=True):
            longest = max(len(one.ids) for _, one in here)
            targets = [[*[0] * (longest - len(one.ids)), *one.ids] for _, one in here]
            targets_ML = torch.tensor(targets, device=device)
            logp_ML, best_ML = _told(head, x_LD[len(row) - longest : len(row)], targets_ML, at_once)
            for (place, one), logp_L, best_L in zip(here, logp_ML.cpu(), best_ML.cpu(), strict=True):
                own = slice(longest - len(one.ids), None)
                cut = len(one.before) + len(one.ids) - 1 - len(row)
                nats = fsum(logp_L[own].double().tolist())
                by_place[place] = Likelihood(nats, len(one.ids), bool(best_L[own].all()), cut)

    with wide_products():
        stored.model(batch, {stored.model.spec.head_names[0]: measured})


def _told(
    head: Callable[[Tensor], Tensor], x_LD: Float[Tensor, "L D"], targets_ML: Int[Tensor, "M L"], at_once: int
) -> tuple[Float[Tensor, "M L"], Bool[Tensor, "M L"]]:
    """Return the log probability of each target, and whether it is the most probable token; those of few at once."""
    logps, bests = [], []
    for x_PD, targets_MP in zip(x_LD.split(at_once), targets_ML.split(at_once, -1), strict=True):
        logits_PV = head(x_PD)
        logp_PV = logits_PV.to(torch.promote_types(logits_PV.dtype, torch.float32)).log_softmax(-1)
        logps.append(logp_PV.gather(-1, targets_MP.T).T)
        bests.append(logits_PV.argmax(-1) == targets_MP)
    return torch.cat(logps, -1), torch.cat(bests, -1)


def _padded(rows: Sequence[Ids]) -> tuple[Int[Tensor, "B L"], Bool[Tensor, "B L"]]:
    longest = max(map(len, rows))
    ids_BL = torch.tensor([[*row, *[0] * (longest - len(row))] for row in rows], dtype=torch.long)
    real_BL = torch.arange(longest)[None] < torch.tensor([len(row) for row in rows])[:, None]
    return ids_BL, real_BL
