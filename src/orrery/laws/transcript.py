"""A decoding session and its record: what every row was told and answered, so that all of it can be checked."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from orrery.laws.evidence import deviation
from orrery.laws.models import Subject
from orrery.laws.place import placed
from orrery.models.session import DecodingSession
from orrery.nn.cache.rows import RowCache

Rows = Sequence[Sequence[int]]


class FullForwards:
    """The full forwards of a model, each asked once, however many sessions are compared with it.

    One lives as long as one check: what a later check changes in the model's code is computed again.
    """

    def __init__(self, model: Subject) -> None:
        self.model = model
        self._seen: dict[tuple[tuple[int, ...], ...], Tensor] = {}

    def logits(self, rows: Rows) -> Tensor:
        """Return the logits ``[B, L, V]`` of rows of one length, from one forward over all of them."""
        key = tuple(tuple(row) for row in rows)
        if key not in self._seen:
            self._seen[key] = self.model.logits(placed(torch.tensor(rows)))
        return self._seen[key]


@dataclass
class Transcript:
    """A session, and of each row the tokens it was told and the answer after each; the prompt has one answer, its last.

    The answers are compared with one full forward of each row alone, which gives all of them: a token that a later one
    changes would be a look into the future, and differ as well.
    """

    full: FullForwards
    session: DecodingSession
    rows: list[list[int]]
    answers: list[list[Tensor]] = field(default_factory=list)
    earlier: float = 0.0

    @classmethod
    def start(cls, model: Subject | FullForwards, rows: Rows, cache: RowCache) -> "Transcript":
        """Read prompts of unequal lengths."""
        full = model if isinstance(model, FullForwards) else FullForwards(model)
        ids, lengths = rectangle(rows)
        logits, session = full.model.start(ids, cache.capacity, lengths, cache=cache)
        return cls(full, session, [list(row) for row in rows], [[row] for row in logits])

    def step(self, rows: Rows) -> None:
        """Tell each row some more tokens, perhaps none."""
        ids, lengths = rectangle(rows)
        logits = self.full.model.step(ids, self.session, lengths)
        for have, said, more, answers in zip(self.rows, self.answers, rows, logits, strict=True):
            have.extend(more)
            said.extend(answers[: len(more)])

    def select(self, rows: Sequence[int]) -> None:
        """Keep some rows, in an order, perhaps several times."""
        self.session = self.session.select(rows)
        self.rows = [list(self.rows[row]) for row in rows]
        self.answers = [list(self.answers[row]) for row in rows]

    def join(self, other: "Transcript") -> None:
        """Append the rows of another session."""
        self.session = self.session.join(other.session)
        self.rows, self.answers = self.rows + other.rows, self.answers + other.answers
        self.earlier = max(self.earlier, other.earlier)

    def truncate(self, lengths: Sequence[int]) -> None:
        """Forget the end of each row; what it answered so far is compared before it is forgotten."""
        self.earlier = self.worst
        self.session = self.session.truncate(lengths)
        self.rows = [row[:length] for row, length in zip(self.rows, lengths, strict=True)]
        self.answers = [[] for _ in self.rows]

    @property
    def worst(self) -> float:
        """Return the largest deviation of any answer from a full forward."""
        compared = [self._compare(row, said) for row, said in zip(self.rows, self.answers, strict=True) if said]
        return max([self.earlier, *compared])

    def _compare(self, row: list[int], said: list[Tensor]) -> float:
        expected_LV = self.full.logits([row])[0]
        return deviation(torch.stack(said), expected_LV[len(row) - len(said) :])


def rectangle(rows: Rows) -> tuple[Tensor, list[int]]:
    """Return right-padded ids ``[B, L]`` and the rows' lengths."""
    lengths = [len(row) for row in rows]
    ids = torch.zeros(len(rows), max(lengths), dtype=torch.long)
    for row, tokens in zip(ids, rows, strict=True):
        row[: len(tokens)] = torch.tensor(tokens, dtype=torch.long)
    return placed(ids), lengths
