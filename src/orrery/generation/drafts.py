"""Drafts: what guesses the next tokens of an answer before the model judges them."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from orrery.errors import UsageError
from orrery.generation.filters import History
from orrery.generation.reading import DraftSession, common_start
from orrery.generation.samplers import Sampler
from orrery.models.protocols import DecodingModel


@dataclass(frozen=True)
class Guess:
    """A token that may come next.

    Attributes:
        token: its id.
        q_V: the distribution that it was drawn from; ``None`` where nothing was drawn.
    """

    token: int
    q_V: Float[Tensor, "V"] | None = None


class Draft(ABC):
    """What guesses the tokens that come next in one row."""

    @abstractmethod
    def propose(
        self, prompt: Sequence[int], answer: Sequence[int], count: int, sampler: Sampler, draws: torch.Generator
    ) -> list[Guess]:
        """Return at most ``count`` tokens that may follow the answer, drawn by ``sampler`` if they are drawn."""


@final
class PromptLookup(Draft):
    """What followed the last tokens where they stood before in the row (prompt lookup decoding, Saxena 2023).

    Serves where answers repeat their prompt: summaries, edits of code, answers from a document.

    Args:
        longest: tokens of the run that is looked for first; shorter ones are tried after it.
    """

    def __init__(self, longest: int = 3) -> None:
        if longest < 1:
            raise UsageError(f"a run of {longest} tokens cannot be looked up", "it must be at least 1")
        self.longest = longest

    def propose(
        self, prompt: Sequence[int], answer: Sequence[int], count: int, sampler: Sampler, draws: torch.Generator
    ) -> list[Guess]:
        """Return what followed the newest earlier place of the longest run."""
        row = [*prompt, *answer]
        for length in range(min(self.longest, len(row) - 1), 0, -1):
            tail = row[-length:]
            for start in range(len(row) - length - 1, -1, -1):
                if row[start : start + length] == tail:
                    return [Guess(token) for token in row[start + length : start + length + count]]
        return []


@final
class DraftModel(Draft):
    """A smaller model of the same vocabulary; the more alike the two distributions, the more guesses hold.

    Args:
        model: what guesses.
        context: the most tokens that it reads in one row.
        device: where it is.
    """

    def __init__(self, model: DecodingModel, context: int, device: torch.device | None = None) -> None:
        self._model, self._context, self._device = model, context, device
        self._prompt: list[int] | None = None
        self._reading: DraftSession | None = None

    def propose(
        self, prompt: Sequence[int], answer: Sequence[int], count: int, sampler: Sampler, draws: torch.Generator
    ) -> list[Guess]:
        """Return what the draft model writes next; nothing once its context is full."""
        reading = self._reading_of(list(prompt), answer)
        if reading is None:
            return []
        # At least the last token is read again: its logits are needed.
        reading.go_back(common_start(reading.answer, answer[:-1]))
        new = answer[len(reading.answer) :]
        count = min(count, reading.room - len(new) + 1)  # the last guess is not read
        if count < 1:
            return []
        logits_V = reading.read(new)[-1] if new else reading.first_V
        reading.mark(count)
        begun = prompt if self._model.first_token is None else [self._model.first_token]
        history = History.of([begun], logits_V[None], [answer], sampler.window)
        guesses: list[Guess] = []
        while True:
            filtered_1V = sampler.filtered(logits_V[None], history)
            token_1 = sampler.pick(filtered_1V, [draws])
            guesses.append(Guess(int(token_1), filtered_1V[0].double().softmax(-1) if sampler.draws else None))
            if len(guesses) == count:
                return guesses
            history.add(token_1)
            logits_V = reading.read([guesses[-1].token])[-1]

    def _reading_of(self, prompt: list[int], answer: Sequence[int]) -> DraftSession | None:
        """Return the reading of this prompt, which goes on from guess to guess; another answer begins again."""
        reading = self._reading
        other = reading is not None and common_start(reading.answer, answer[:-1]) < reading.certain
        if self._prompt != prompt or other:
            self._prompt = prompt
            fits = self._model.first_token is not None or len(prompt) <= self._context
            self._reading = DraftSession(self._model, prompt, self._context, self._device) if fits else None
        return self._reading
