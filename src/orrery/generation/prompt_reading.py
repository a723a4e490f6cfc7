"""The reading of one prompt, some tokens at a time."""

from collections.abc import Sequence
from typing import Any, final

import torch
from torch import Tensor

from orrery.generation.prefixes import Prefixes
from orrery.generation.reading import common_start
from orrery.generation.requests import Answering, TokenScore, scores_of
from orrery.models.protocols import ChunkedModel


@final
class PromptReading:
    """A prompt that is being read into a session of its own, so that it pads no other row.

    Args:
        model: what reads.
        answering: whose prompt; what it has written already is read behind it.
        capacity: tokens of a whole row.
        prefixes: prompts that were read before.
        device: where the model is.
        alone: read it in no call with others.
        grid: read pieces that end at its multiples, and what was written a token at a time, as it was written: the
            same calls, and so the same bits, whether a beginning was read before, and however much a round may read.

    Attributes:
        session: what has read the tokens so far; ``None`` before the first.
        logits_V: those behind the last token that was read.
    """

    def __init__(
        self,
        model: ChunkedModel,
        answering: Answering,
        capacity: int,
        prefixes: Prefixes,
        device: torch.device | None = None,
        *,
        alone: bool = False,
        grid: int | None = None,
    ) -> None:
        self.answering = answering
        self.session: Any = None
        self.logits_V = torch.empty(0)
        self._model, self._capacity, self._prefixes, self._device = model, capacity, prefixes, device
        self._ids = [*answering.request.prompt, *answering.written]
        self._alone, self._grid, self._taken = alone, grid, 0
        self._at_once = model.reads_at_once  # asked for each pair of prompts

    @property
    def done(self) -> bool:
        """Whether all is read."""
        return self._taken == len(self._ids)

    @property
    def remaining(self) -> int:
        """How many tokens are not read yet."""
        return len(self._ids) - self._taken

    @property
    def left(self) -> Sequence[int]:
        """The tokens that are not read yet."""
        return self._ids[self._taken :]

    @property
    def joins(self) -> bool:
        """Whether it can be finished in one call with others."""
        own = self.answering
        again = self._at_once and own.written
        return not (self._alone or own.request.prompt_scores or again)

    def could_reuse(self, other: "PromptReading") -> bool:
        """Return whether this prompt could go on from what another one will have read."""
        if self.session is not None or self._at_once:
            return False
        if self.answering.request.adapter != other.answering.request.adapter:
            return False
        return self._prefixes.serves(min(common_start(self._ids, other._ids), len(self._ids) - 1))

    def begin(self) -> None:
        """Go on from a prompt that begins alike, where there is one."""
        reads_all = self.answering.request.prompt_scores or self._at_once
        if self.session is not None or reads_all:
            return
        prefix = self._prefixes.find(self._ids, self.answering.request.adapter, self._grid or 1)
        if prefix is not None:
            self._taken, self.session = prefix
            if not self._alone:  # what is read again was not spared
                self.answering.reused = self._taken

    def advance(self, most: int) -> int:
        """Read at most so many tokens, all of the prompt where the model cannot read it in parts; return how many.

        On a grid it reads the next piece, or nothing where that is longer than ``most``.
        """
        self.begin()
        before = self._taken
        if self._grid is not None:
            piece = self._piece(self._grid)
            if piece > most and not self._at_once:
                return 0
            most = piece
        if self.session is None:
            self._start(most)
        else:
            self._step(self._ids[before : before + most])
        if self.done:
            self.keep(self.session, 0)
        return self._taken - before

    def _piece(self, grid: int) -> int:
        """Return how many tokens there are to the next multiple of the grid, or the end of the prompt."""
        prompt = len(self.answering.request.prompt)
        if self._taken >= prompt:
            return 1
        return min(prompt, (self._taken // grid + 1) * grid) - self._taken

    def keep(self, session: Any, row: int) -> None:
        """Keep what was read, which is this row of a session, for prompts that begin alike."""
        own = self.answering
        other_calls = self._grid is not None and (own.written or own.request.prompt_scores)
        if not self._model.reads_at_once and not other_calls:
            self._prefixes.keep(self._ids, own.request.adapter, session, row)

    def _start(self, most: int) -> None:
        request = self.answering.request
        first = 1 if request.prompt_scores else most
        read = list(request.prompt) if self._model.reads_at_once else self._ids[:first]
        logits_1V, self.session = self._model.start(self._rows(read), self._capacity)
        self.logits_V, self._taken = logits_1V[0], len(read)
        if request.prompt_scores:
            self.answering.prompt_scores = [TokenScore(read[0], None)]

    def _step(self, tokens: Sequence[int]) -> None:
        logits_NV = self._model.step(self._rows(tokens), self.session)[0]
        request = self.answering.request
        next_tokens = tokens[: max(0, len(request.prompt) - self._taken)] if request.prompt_scores else ()
        if next_tokens:
            behind_NV = torch.cat([self.logits_V[None], logits_NV[: len(next_tokens) - 1]])
            self.answering.prompt_scores += scores_of(behind_NV, next_tokens, request.scores or 0)
        self.logits_V, self._taken = logits_NV[-1], self._taken + len(tokens)

    def _rows(self, ids: Sequence[int]) -> Tensor:
        return torch.tensor([list(ids)], dtype=torch.long, device=self._device)
