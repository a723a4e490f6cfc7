"""A model that reads one row, and can go back in it."""

from collections.abc import Sequence
from typing import Any, final

import torch
from jaxtyping import Float
from torch import Tensor

from orrery.models.protocols import DecodingModel


@final
class DraftSession:
    """A model's session of one row: its prompt, and an answer, the last tokens of which can be forgotten.

    Args:
        model: what reads.
        prompt: its ids, or the source's.
        capacity: tokens of the whole row.
        device: where the model is.

    Attributes:
        answer: the tokens that were read behind the prompt.
        first_V: the logits behind the prompt.
        certain: how many tokens of the answer stood at the last mark, and stay.
    """

    def __init__(
        self, model: DecodingModel, prompt: Sequence[int], capacity: int, device: torch.device | None = None
    ) -> None:
        self._model, self._device = model, device
        self._copy: Any = None
        logits_1V, self._session = model.start(torch.tensor([list(prompt)], device=device), capacity)
        self.first_V = logits_1V[0]
        self.answer: list[int] = []
        self.certain = 0
        self._most = capacity - self._session.lengths[0]

    @property
    def room(self) -> int:
        """How many tokens the row can still read."""
        return self._most - len(self.answer)

    def mark(self, tokens: int) -> None:
        """Be ready to go back here, once at most so many tokens are read; a session that cannot go back is copied."""
        self.certain = len(self.answer)
        self._copy = None if self._session.can_take_back(tokens) else self._session.fork()

    def read(self, tokens: Sequence[int]) -> Float[Tensor, "N V"]:
        """Read one token or several in one step and return the logits behind each."""
        logits_NV = self._model.step(torch.tensor([list(tokens)], device=self._device), self._session)[0]
        self.answer += tokens
        return logits_NV

    def go_back(self, length: int) -> None:
        """Forget all but the first ``length`` tokens of the answer, at least those that are certain."""
        if length == len(self.answer):
            return
        kept = self.answer[:length]
        if self._copy is None:
            self._session = self._session.truncate([self._session.lengths[0] - len(self.answer) + length])
            self.answer = kept
        else:
            self._session, self._copy, self.answer = self._copy, None, kept[: self.certain]
            if kept[self.certain :]:
                self.read(kept[self.certain :])


def common_start(some: Sequence[int], other: Sequence[int]) -> int:
    """Return how many tokens both begin with."""
    same = zip(some, other, strict=False)
    return next((place for place, (a, b) in enumerate(same) if a != b), min(len(some), len(other)))
