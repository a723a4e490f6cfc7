"""Constraints: which tokens may be chosen at all at a place of an answer, whatever the model thinks of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from jaxtyping import Float
from torch import Tensor


@dataclass(frozen=True)
class TokenPlace:
    """Where a token is chosen: behind what stood before, in an answer so far, which may have ``longest`` tokens."""

    before: Sequence[int]
    answer: Sequence[int]
    longest: int

    @property
    def ids(self) -> list[int]:
        """Every token of the row; that of an encoder-decoder begins with its start token."""
        return [*self.before, *self.answer]


@dataclass(frozen=True)
class Constraints:
    """What ``generation_config.json`` demands or forbids, with the meaning that the reference gives its keys.

    Attributes:
        end: the ids that end a text.
        first: the only token behind a row of one (``forced_bos_token_id``).
        last: the only tokens that may close the longest answer (``forced_eos_token_id``).
        least_row: tokens of a row before it may end (``min_length``).
        least_answer: tokens of an answer before it may end (``min_new_tokens``).
        never: tokens that are never chosen (``suppress_tokens``).
        never_first: tokens that begin no answer (``begin_suppress_tokens``).
        phrases: runs of tokens that are never completed (``bad_words_ids``).
        once: the length of the runs that may not come twice in a row (``no_repeat_ngram_size``); 0 for any.
        repeated: what the log probability of a token of the row is multiplied by where answers are searched for
            (``repetition_penalty``); where they are drawn, the sampler does it to logits.
    """

    end: frozenset[int] = frozenset()
    first: int | None = None
    last: tuple[int, ...] = ()
    least_row: int = 0
    least_answer: int = 0
    never: tuple[int, ...] = ()
    never_first: tuple[int, ...] = ()
    phrases: tuple[tuple[int, ...], ...] = ()
    once: int = 0
    repeated: float | int = 1

    @cached_property
    def free(self) -> bool:
        """Whether every token may be chosen at every place; a penalty forbids none."""
        return self == Constraints(end=self.end, repeated=self.repeated)

    def penalised(self, logp_BV: Float[Tensor, "B V"], rows: Sequence[TokenPlace]) -> Float[Tensor, "B V"]:
        """Return log probabilities, those of tokens that a row holds made less by the penalty of repetitions."""
        if self.repeated == 1:
            return logp_BV
        logp_BV = logp_BV.clone()
        for place, row in enumerate(rows):
            held = [id for id in sorted(set(row.ids)) if id < logp_BV.shape[-1]]
            logp_BV[place, held] *= self.repeated
        return logp_BV

    def __call__(self, scores_BV: Float[Tensor, "B V"], rows: Sequence[TokenPlace]) -> Float[Tensor, "B V"]:
        """Return the scores, minus infinity where a token may not be chosen, and 0 where it must be."""
        if self.free:
            return scores_BV
        scores_BV = scores_BV.clone()
        for place, row in enumerate(rows):
            forced = self._forced(row)
            hidden = sorted(self._forbidden(row)) if not forced else slice(None)
            scores_BV[place, hidden] = float("-inf")
            scores_BV[place, list(forced)] = 0.0
        return scores_BV

    def _forced(self, row: TokenPlace) -> tuple[int, ...]:
        """Return the tokens of which the next must be one."""
        if self.last and len(row.answer) == row.longest - 1:
            return self.last
        return () if self.first is None or len(row.ids) != 1 else (self.first,)

    def _forbidden(self, row: TokenPlace) -> set[int]:
        """Return the tokens that may not come next."""
        ids = row.ids
        forbidden = set(self.never)
        if len(ids) < self.least_row or len(row.answer) < self.least_answer:
            forbidden |= self.end
        if len(row.answer) == int(self.first is not None and len(row.before) == 1):
            forbidden |= set(self.never_first)
        for *start, token in self.phrases:
            if ids[len(ids) - len(start) :] == start:
                forbidden.add(token)
        return forbidden | self._repeated(ids)

    def _repeated(self, ids: Sequence[int]) -> set[int]:
        """Return the tokens that would complete a run which the row holds already."""
        if not 0 < self.once <= len(ids):
            return set()
        tail = ids[len(ids) - self.once + 1 :]
        starts = range(len(ids) - self.once + 1)
        return {ids[i + self.once - 1] for i in starts if ids[i : i + self.once - 1] == tail}


FREE = Constraints()
"""No constraint."""
