"""The next token of rows that were asked for in different ways."""

from collections.abc import Sequence
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from orrery.generation.filters import History
from orrery.generation.next_token import Choice, at, write
from orrery.generation.requests import Answering, TokenScore, Written, scores_of
from orrery.generation.row import GenerationRow
from orrery.generation.samplers import Sampler


def choose(rows: Sequence[Answering], logits_NV: Float[Tensor, "N V"]) -> None:
    """Give each row its next token; a row for which none can be chosen ends with its error, and no other does.

    Rows with one and the same sampler are drawn together, which changes no token: each has its own random numbers.

    Args:
        rows: the answers, all of which go on.
        logits_NV: those of each.
    """
    groups: dict[Sampler, list[int]] = {}
    for place, row in enumerate(rows):
        groups.setdefault(row.request.sampler, []).append(place)
    for sampler, places in groups.items():
        own, logits_GV = [rows[place] for place in places], at(logits_NV, places)
        write([_row(one) for one in own], logits_GV, _Asked(sampler, own, logits_GV))


def _row(answering: Answering) -> GenerationRow:
    assert answering.row is not None
    return answering.row


@final
class _Asked(Choice):
    """What one sampler draws for the rows that asked for it; each is told its token with its score."""

    def __init__(self, sampler: Sampler, rows: Sequence[Answering], logits_GV: Float[Tensor, "G V"]) -> None:
        self._sampler, self._rows, self._logits_GV = sampler, rows, logits_GV
        self._scores: dict[int, TokenScore] = {}

    def pick(self, places: Sequence[int], allowed_NV: Float[Tensor, "N V"]) -> list[int]:
        """Return the tokens of the rows that may go on."""
        rows = [self._rows[place] for place in places]
        tokens = _drawn(self._sampler, rows, allowed_NV)
        scores = _scores(rows, tokens, at(self._logits_GV, places))
        self._scores = {places[own]: score for own, score in scores.items()}
        return tokens

    def take(self, place: int, row: GenerationRow, token: int) -> bool:
        """Add a token to its answer, and tell of it."""
        own, score, shown = self._rows[place], self._scores.get(place), row.writer.pieces
        if score is not None:
            own.scores.append(score)
        goes_on = row.take(token)
        if own.history is not None:
            own.history.add(torch.tensor([token], device=own.history.written_BV.device))
        if own.request.told is not None:
            own.request.told(Written(token, row.writer.since(shown), score))
        return goes_on

    def failed(self, places: Sequence[int], error: Exception) -> None:
        """End the rows with the error, and no other."""
        for place in places:
            self._rows[place].error = error


def end_if_whole(row: Answering) -> None:
    """End an answer of which it is known only now that it was whole, and tell what text that makes certain."""
    assert row.row is not None
    shown = row.row.writer.pieces
    if not row.row.goes_on() and row.request.told is not None and (text := row.row.writer.since(shown)):
        row.request.told(Written(row.row.ids[-1], text, None))


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


def _scores(rows: Sequence[Answering], tokens: Sequence[int], logits_GV: Float[Tensor, "G V"]) -> dict[int, TokenScore]:
    """Return the score of the token of each row that asks for it, by its place; those that ask alike in one call."""
    groups: dict[int, list[int]] = {}
    for place, row in enumerate(rows):
        if row.request.scores is not None:
            groups.setdefault(row.request.scores, []).append(place)
    scores: dict[int, TokenScore] = {}
    for best, places in groups.items():
        some = scores_of(at(logits_GV, places), [tokens[place] for place in places], best)
        scores.update(zip(places, some, strict=True))
    return scores
