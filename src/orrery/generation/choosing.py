"""The next token of rows that were asked for in different ways."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from orrery.generation.constraints import Place
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
    groups: dict[Sampler, list[tuple[Answering, Tensor, Tensor]]] = {}
    for row, logits_V in zip(rows, logits_NV, strict=True):
        try:
            allowed_V = _allowed(row, logits_V)
        except Exception as error:  # of whatever kind: the neighbours go on
            row.error = error
        else:
            groups.setdefault(row.request.sampler, []).append((row, logits_V, allowed_V))
    for sampler, group in groups.items():
        try:
            tokens = _drawn(sampler, group)
        except Exception as error:  # of a sampler that these rows alone have
            for row, _, _ in group:
                row.error = error
            continue
        for (row, logits_V, _), token in zip(group, tokens, strict=True):
            try:
                _take(row, token, logits_V)
            except Exception as error:
                row.error = error


def _drawn(sampler: Sampler, group: Sequence[tuple[Answering, Tensor, Tensor]]) -> list[int]:
    """Return a token for each row of those with one sampler."""
    history = History.joined([_history(row) for row, _, _ in group])
    allowed_GV = torch.stack([allowed_V for _, _, allowed_V in group])
    return sampler(allowed_GV, history, [row.generator for row, _, _ in group]).tolist()


def _allowed(row: Answering, logits_V: Float[Tensor, "V"]) -> Float[Tensor, "V"]:
    """Return the logits of the tokens that may come next."""
    assert row.row is not None
    check_logits(logits_V[None])
    limits = row.request.limits
    kept_1V = limits.constraints(logits_V[None], [Place(row.begun, row.written, limits.max_new_tokens)])
    return row.row.guided(kept_1V[0])


def _history(row: Answering) -> History:
    assert row.history is not None
    return row.history


def _take(row: Answering, token: int, logits_V: Float[Tensor, "V"]) -> None:
    """Add a token to its answer and tell of it."""
    assert row.row is not None
    shown = len(row.row.writer.text)
    score: TokenScore | None = None
    if row.request.scores is not None:
        (score,) = scores_of(logits_V[None], [token], row.request.scores)
        row.scores.append(score)
    row.row.take(token)
    history = _history(row)
    history.add(torch.tensor([token], device=history.written_BV.device))
    if row.request.told is not None:
        row.request.told(Written(token, row.row.writer.text[shown:], score))
