"""Rows that are written together, and their session."""

from collections.abc import Sequence
from typing import Any, final

import torch
from torch import Tensor

from orrery.generation.requests import Answering


@final
class Batch:
    """Answers of which each step writes one token, and their session, row for row."""

    def __init__(self, rows: Sequence[Answering], session: Any) -> None:
        self.rows, self._session = list(rows), session

    def step(self, model: Any, device: torch.device | None) -> Tensor:
        """Read the last token of each row; return the logits behind it, ``[B, V]``."""
        tokens_B1 = torch.tensor([[own.written[-1]] for own in self.rows], device=device)
        logits_B1V: Tensor = model.step(tokens_B1, self._session)
        return logits_B1V[:, -1]

    def drop(self) -> None:
        """Let go of the rows that have ended or wait; the last ones take their places."""
        going = [place for place, own in enumerate(self.rows) if not (own.done or own.late)]
        if len(going) == len(self.rows):
            return
        order = compacted(going)
        self._session = self._session.select(order) if order else None
        self.rows = [self.rows[place] for place in order]

    def join(self, other: "Batch") -> None:
        """Take the rows of another batch, which is used up."""
        if other.rows:
            self._session = self._session.join(other._session) if self.rows else other._session
            self.rows += other.rows


def compacted(rows: Sequence[int]) -> list[int]:
    """Return rising numbers of rows in an order in which as few as possible change their place.

    A place below their count that is free is taken by one of the last.
    """
    stay = [row for row in rows if row < len(rows)]
    free = iter(rows[len(stay) :])
    kept = set(stay)
    return [place if place in kept else next(free) for place in range(len(rows))]
