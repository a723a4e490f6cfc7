"""The hypotheses of a search: those that grow, those that have ended, and how an ended one leaves its place."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from orrery.errors import UsageError
from orrery.generation.constraints import TokenPlace
from orrery.generation.row import FinishReason, Limits

LARGEST = 60
"""Beyond it the divisor of a long answer is no finite number, or nought."""


@dataclass(frozen=True)
class Hypothesis:
    """One answer that a search found.

    Attributes:
        ids: its tokens, the end token among them.
        log_probability: ``log p(ids | source)``, in nats.
        score: the log probability over the length penalty; what answers are ranked by.
        finish_reason: why it ended.
    """

    ids: list[int]
    log_probability: float
    score: float
    finish_reason: FinishReason


@dataclass(frozen=True)
class LengthPenalty:
    """``((5 + length) / 6) ** alpha``, by which log probabilities are divided (Wu et al. 2016, equation 14).

    0 changes nothing and favours short answers, since every token costs; the Transformer used 0.6. The length
    counts the end token. Differs from Hugging Face, which divides by ``length ** alpha``.
    """

    alpha: float | int = 0.6

    def __post_init__(self) -> None:
        # Beyond 10 a second token counts for more than the first; at 70 a long answer's divisor overflows.
        if not 0 <= self.alpha <= 10:
            raise UsageError(f"length_penalty = {self.alpha} is not possible", "it must be at least 0 and at most 10")

    def __call__(self, length: int) -> float:
        """Return what the log probability of ``length`` tokens is divided by."""
        return float(((5 + length) / 6) ** self.alpha)


@dataclass(frozen=True)
class HuggingFacePenalty:
    """``length ** alpha``: what ``length_penalty`` means in the files of a published model; below 0 short ones gain."""

    alpha: float | int

    def __post_init__(self) -> None:
        if not abs(self.alpha) <= LARGEST:
            hint = f"it must be at least -{LARGEST} and at most {LARGEST}"
            raise UsageError(f"length_penalty = {self.alpha} is not possible", hint)

    def __call__(self, length: int) -> float:
        """Return what the log probability of ``length`` tokens is divided by."""
        return float(length**self.alpha)


Penalty = LengthPenalty | HuggingFacePenalty


@dataclass
class Beam(ABC):
    """The hypotheses of one source: those that grow, and those that have ended."""

    limits: Limits
    penalty: Penalty
    width: int
    remaining: int
    growing: list[tuple[float, list[int]]] = field(default_factory=lambda: [(0.0, [])])
    ended: list[Hypothesis] = field(default_factory=list)
    added: list[float] | None = None
    """What is added to the score of each hypothesis that ends now, at most 0; see ``Coverage``."""

    @property
    def reach(self) -> int:
        """How many continuations of each hypothesis are looked at."""
        return self.width

    @property
    def longest(self) -> int:
        """The most tokens that an answer can have."""
        return min(self.limits.max_new_tokens, self.remaining + 1)

    @abstractmethod
    def extend(self, values: list[list[float]], tokens: list[list[int]]) -> list[tuple[int, int]]:
        """Take the best continuations; return the parent and the token of each that grows on."""

    @abstractmethod
    def settled(self, wanted: int) -> bool:
        """Whether nothing that still grows can enter the best ``wanted``."""

    def candidates(self, values: list[list[float]], tokens: list[list[int]]) -> list[tuple[float, int, int]]:
        """Return the continuations with their log probability, parent and token, the best first."""
        continuations = [
            (total + value, parent, token)
            for parent, (total, _) in enumerate(self.growing)
            for value, token in zip(values[parent], tokens[parent], strict=True)
            if value > float("-inf")
        ]
        return sorted(continuations, key=lambda one: -one[0])

    def hypothesis(self, total: float, ids: list[int], reason: FinishReason, parent: int) -> Hypothesis:
        """Return an answer that has ended."""
        score = total / self.penalty(len(ids)) + (0.0 if self.added is None else self.added[parent])
        return Hypothesis(ids, total, score, reason)

    def places(self, before: Sequence[int]) -> list[TokenPlace]:
        """Return where each hypothesis goes on."""
        return [TokenPlace(before, ids, self.limits.max_new_tokens) for _, ids in self.growing]

    def best(self, wanted: int) -> list[Hypothesis]:
        """Return the best answers."""
        return sorted(self.ended, key=lambda hypothesis: -hypothesis.score)[:wanted]

    def reason(self, ids: list[int]) -> FinishReason | None:
        """Return why an answer ends here, if it does."""
        if ids[-1] in self.limits.end:
            return "end"
        if len(ids) >= self.limits.max_new_tokens:
            return "length"
        return "context" if len(ids) > self.remaining else None


class NarrowingBeam(Beam):
    """An answer that ends leaves its place empty: the beam narrows (Sutskever et al. 2014, section 3.2)."""

    def extend(self, values: list[list[float]], tokens: list[list[int]]) -> list[tuple[int, int]]:
        """Take the best continuations; return the parent and the token of each that grows on."""
        continuations = self.candidates(values, tokens)[: self.width - len(self.ended)]
        before, self.growing, kept = self.growing, [], []
        for total, parent, token in continuations:
            ids = [*before[parent][1], token]
            reason = self.reason(ids)
            if reason is None:
                self.growing.append((total, ids))
                kept.append((parent, token))
            else:
                self.ended.append(self.hypothesis(total, ids, reason, parent))
        return kept

    def settled(self, wanted: int) -> bool:
        """Whether nothing that still grows can enter the best ``wanted``: totals fall, divisors have one direction."""
        if not self.growing:
            return True
        total, ids = self.growing[0]
        bound = total / max(self.penalty(len(ids) + 1), self.penalty(self.longest))
        return sum(hypothesis.score >= bound for hypothesis in self.ended) >= wanted


@dataclass
class RefilledBeam(Beam):
    """An answer that ends is replaced by the next best continuation, so that ``width`` always grow, as in transformers.

    Of the best ``width`` continuations those that end are kept, the best ``width`` of all steps. It is over when that
    many have ended and, without ``early_stopping``, the best that grows would not enter if it ended now; with
    ``"never"`` it is measured at the longest length, and with ``True`` nothing more is waited for.
    """

    early_stopping: bool | Literal["never"] = False
    improvable: bool = True

    @property
    def reach(self) -> int:
        """Enough for ``width`` that go on, if each of the end tokens stands before them."""
        return max(2, 1 + len(self.limits.end)) * self.width

    def extend(self, values: list[list[float]], tokens: list[list[int]]) -> list[tuple[int, int]]:
        """Take the best continuations; return the parent and the token of each that grows on."""
        continuations = self.candidates(values, tokens)[: self.reach]
        before, self.growing, kept = self.growing, [], []
        for rank, (total, parent, token) in enumerate(continuations):
            ids = [*before[parent][1], token]
            reason = self.reason(ids)
            if reason is None and len(self.growing) < self.width:
                self.growing.append((total, ids))
                kept.append((parent, token))
            elif reason is not None and rank < self.width:
                self.ended.append(self.hypothesis(total, ids, reason, parent))
        self.ended = self.best(self.width)
        self.improvable = bool(self.growing) and (len(self.ended) < self.width or self._bound() > self.ended[-1].score)
        return kept

    def settled(self, wanted: int) -> bool:
        """Whether enough have ended."""
        return not self.improvable or (self.early_stopping is True and len(self.ended) == self.width)

    def _bound(self) -> float:
        """Return what the best that grows is measured by."""
        total, ids = self.growing[0]
        now = self.penalty(len(ids))
        return total / (max(now, self.penalty(self.longest)) if self.early_stopping == "never" else now)
