"""A model that reads one row, and can go back in it."""

from collections.abc import Sequence
from typing import Any, final

import torch
from jaxtyping import Float
from torch import Tensor

from orrery.models.protocols import DecodingModel


@final
class Reading:
    """A model's session of one row: its prompt, and an answer, the last tokens of which can be forgotten.

    Args:
        model: what reads.
        prompt: its ids, or the source's.
        capacity: tokens of the whole row.
        device: where the model is.

    Attributes:
        answer: the tokens that were read behind the prompt.
        logits_V: behind the token that was read last.
    """

    def __init__(
        self, model: DecodingModel, prompt: Sequence[int], capacity: int, device: torch.device | None = None
    ) -> None:
        self._model, self._device = model, device
        self._marked: tuple[Any, int] | None = None
        logits_1V, self._session = model.start(torch.tensor([list(prompt)], device=device), capacity)
        self.logits_V = logits_1V[0]
        self.answer: list[int] = []
        self._most = capacity - self._session.lengths[0]

    @property
    def room(self) -> int:
        """How many tokens the row can still read."""
        return self._most - len(self.answer)

    def mark(self, tokens: int) -> None:
        """Be ready to go back here, once at most so many tokens are read; a memory that cannot go back is copied."""
        self._marked = None if self._session.can_take_back(tokens) else (self._session.fork(), len(self.answer))

    def read(self, tokens: Sequence[int]) -> Float[Tensor, "N V"]:
        """Read one token or several in one step and return the logits behind each."""
        logits_NV = self._model.step(torch.tensor([list(tokens)], device=self._device), self._session)[0]
        self.answer += tokens
        self.logits_V = logits_NV[-1]
        return logits_NV

    def go_back(self, length: int) -> None:
        """Forget all but the first ``length`` tokens of the answer, none of which was read before the mark."""
        if length == len(self.answer):
            return
        kept = self.answer[:length]
        if self._marked is None:
            self._session = self._session.truncate([self._session.lengths[0] - len(self.answer) + length])
            self.answer = kept
            return
        self._session, at = self._marked
        self._marked, self.answer = None, kept[:at]
        if kept[at:]:
            self.read(kept[at:])
