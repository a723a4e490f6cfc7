"""A decoding session with its minutes: what every row was told, so that every answer can be checked."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from orrery.laws.evidence import deviation
from orrery.laws.models import Subject
from orrery.models.protocols import DecodingState
from orrery.nn.caches import RowCache

Rows = Sequence[Sequence[int]]


@dataclass
class Transcript:
    """A state, the tokens of each of its rows, and the largest deviation from a full forward of a row alone."""

    model: Subject
    state: DecodingState
    rows: list[list[int]]
    worst: float = 0.0

    @classmethod
    def start(cls, model: Subject, rows: Rows, cache: RowCache) -> "Transcript":
        """Read prompts of unequal lengths."""
        ids, lengths = rectangle(rows)
        logits, state = model.start(ids, cache.capacity, lengths, cache=cache)
        transcript = cls(model, state, [list(row) for row in rows])
        transcript._compare(logits[:, None], [1] * len(rows))
        return transcript

    def step(self, rows: Rows) -> None:
        """Tell each row some more tokens, perhaps none."""
        ids, lengths = rectangle(rows)
        logits, self.state = self.model.step(ids, self.state, lengths)
        for have, more in zip(self.rows, rows, strict=True):
            have.extend(more)
        self._compare(logits, [len(more) for more in rows])

    def select(self, rows: Sequence[int]) -> None:
        """Keep some rows, in an order, perhaps several times."""
        self.state = self.state.select(torch.tensor(rows))
        self.rows = [list(self.rows[row]) for row in rows]

    def join(self, other: "Transcript") -> None:
        """Append the rows of another session."""
        self.state = self.state.join(other.state)
        self.rows = self.rows + other.rows
        self.worst = max(self.worst, other.worst)

    def truncate(self, lengths: Sequence[int]) -> None:
        """Forget the end of each row."""
        self.state = self.state.truncate(torch.tensor(lengths))
        self.rows = [row[:length] for row, length in zip(self.rows, lengths, strict=True)]

    def _compare(self, logits_BNV: Tensor, counts: Sequence[int]) -> None:
        for row, answers_NV, count in zip(self.rows, logits_BNV, counts, strict=True):
            expected_LV = self.model(torch.tensor([row]))[0]
            found = deviation(answers_NV[:count], expected_LV[len(row) - count :])
            self.worst = max(self.worst, found if found == found else float("inf"))


def rectangle(rows: Rows) -> tuple[Tensor, Tensor]:
    """Return right-padded ids ``[B, L]`` and lengths ``[B]``."""
    lengths = torch.tensor([len(row) for row in rows])
    ids = torch.zeros(len(rows), int(lengths.max()), dtype=torch.long)
    for row, tokens in zip(ids, rows, strict=True):
        row[: len(tokens)] = torch.tensor(tokens, dtype=torch.long)
    return ids, lengths
