"""The next token of rows that were asked for in different ways."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from orrery.generation.constraints import Constraints, Place
from orrery.generation.filters import History
from orrery.generation.generate import check_logits
from orrery.generation.requests import Answering, TokenScore, Written, scores_of
from orrery.generation.samplers import Sampler


def choose(rows: Sequence[Answering], logits_NV: Float[Tensor, "N V"]) -> None:
    """Give each row its next token; a row for which none can be chosen ends with its error, and no other does.

    Rows with one and the same sampler are drawn together, which changes no token: each has its own random numbers.

    Args:
        rows: the answers, all of which go on.
        logits_NV: those of each.
    """
    allowed_NV = _allowed(rows, logits_NV)
    groups: dict[Sampler, list[int]] = {}
    for place, row in enumerate(rows):
        if row.error is None:
            groups.setdefault(row.request.sampler, []).append(place)
    for sampler, places in groups.items():
        try:
            tokens = _drawn(sampler, [rows[place] for place in places], at(allowed_NV, places))
        except Exception as error:  # of a sampler that these rows alone have
            for place in places:
                rows[place].error = error
            continue
        _take([rows[place] for place in places], tokens, at(logits_NV, places))


def end_if_whole(row: Answering) -> None:
    """End an answer of which it is known only now that it was whole, and tell what text that makes certain."""
    assert row.row is not None
    shown = row.row.writer.pieces
    if not row.row.goes_on() and row.request.told is not None and (text := row.row.writer.since(shown)):
        row.request.told(Written(row.row.ids[-1], text, None))


def _allowed(rows: Sequence[Answering], logits_NV: Float[Tensor, "N V"]) -> Float[Tensor, "N V"]:
    """Return the logits of the tokens that may come next; a row that has none, or no numbers, has ended."""
    changed: dict[int, Tensor] = {}
    sound = not bool(logits_NV.sum().isnan())  # quick: one that is no number leaves none of the sum
    for place, row in enumerate(rows):
        assert row.row is not None
        try:
            if not sound:
                check_logits(logits_NV[place, None])
            if row.row.guides or not _is_free(row.request.limits.constraints):
                changed[place] = _constrained(row, logits_NV[place])
        except Exception as error:  # of whatever kind: the neighbours go on
            row.error = error
    if changed:
        logits_NV = logits_NV.clone()
        for place, own_V in changed.items():
            logits_NV[place] = own_V
    return logits_NV


def _is_free(constraints: Constraints) -> bool:
    return constraints.free


def _constrained(row: Answering, logits_V: Float[Tensor, "V"]) -> Float[Tensor, "V"]:
    """Return the logits of the tokens that a row's constraints and guides allow."""
    assert row.row is not None
    limits = row.request.limits
    kept_1V = limits.constraints(logits_V[None], [Place(row.begun, row.written, limits.max_new_tokens)])
    return row.row.guided(kept_1V[0])


def at(logits_NV: Float[Tensor, "N V"], places: Sequence[int]) -> Float[Tensor, "G V"]:
    """Return the logits of some rows, without a copy where they are all."""
    return logits_NV if len(places) == len(logits_NV) else logits_NV[torch.tensor(places, device=logits_NV.device)]


def _drawn(sampler: Sampler, rows: Sequence[Answering], allowed_GV: Float[Tensor, "G V"]) -> list[int]:
    """Return a token for each row of those with one sampler."""
    histories = [_history(row, allowed_GV) for row in rows] if sampler.looks_back else []
    history = History.joined(histories) if histories else History.of([], allowed_GV[:0])
    return sampler(allowed_GV, history, [row.generator for row in rows]).tolist()


def _history(row: Answering, like_NV: Float[Tensor, "N V"]) -> History:
    """Return which tokens a row holds; it is begun when a sampler first asks."""
    if row.history is None:
        row.history = History.of([row.begun], like_NV[:1], [row.written], row.request.sampler.window)
    return row.history


def _take(rows: Sequence[Answering], tokens: Sequence[int], logits_GV: Float[Tensor, "G V"]) -> None:
    """Add to each answer its token and tell of it."""
    scores = _scores(rows, tokens, logits_GV)
    for place, (row, token) in enumerate(zip(rows, tokens, strict=True)):
        try:
            _take_one(row, token, scores.get(place))
        except Exception as error:  # of whoever listens
            row.error = error


def _scores(rows: Sequence[Answering], tokens: Sequence[int], logits_GV: Float[Tensor, "G V"]) -> dict[int, TokenScore]:
    """Return the score of the token of each row that asks for it, by its place; those that ask alike in one call."""
    groups: dict[int, list[int]] = {}
    for place, row in enumerate(rows):
        if row.request.scores is not None:
            groups.setdefault(row.request.scores, []).append(place)
    found: dict[int, TokenScore] = {}
    for best, places in groups.items():
        some = scores_of(at(logits_GV, places), [tokens[place] for place in places], best)
        found.update(zip(places, some, strict=True))
    return found


def _take_one(row: Answering, token: int, score: TokenScore | None) -> None:
    assert row.row is not None
    shown = row.row.writer.pieces
    if score is not None:
        row.scores.append(score)
    row.row.take(token)
    if row.history is not None:
        row.history.add(torch.tensor([token], device=row.history.written_BV.device))
    if row.request.told is not None:
        row.request.told(Written(token, row.row.writer.since(shown), score))
