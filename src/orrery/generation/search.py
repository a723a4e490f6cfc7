"""Search: the answers with the greatest score, followed a few at once (beam) or all of them (exhaustive)."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from orrery.errors import UsageError
from orrery.generation.constraints import Constraints, Place
from orrery.generation.generate import FinishReason, Limits, beginnings, check_logits, check_prompts, padded
from orrery.generation.samplers import VocabularyLimit
from orrery.models.protocols import DecodingModel

MOST_ANSWERS = 1_000_000
"""Sequences that an exhaustive search looks at; beyond that a user waits for hours."""


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
    """``length ** alpha``: what ``length_penalty`` means in the files of a published model."""

    alpha: float | int

    def __post_init__(self) -> None:
        if not self.alpha >= 0:
            raise UsageError(f"length_penalty = {self.alpha} is not possible", "it must be at least 0")

    def __call__(self, length: int) -> float:
        """Return what the log probability of ``length`` tokens is divided by."""
        return float(length**self.alpha)


Penalty = LengthPenalty | HuggingFacePenalty


@dataclass
class _Beam:
    """The hypotheses of one source: those that grow, and those that have ended."""

    limits: Limits
    penalty: Penalty
    width: int
    remaining: int
    growing: list[tuple[float, list[int]]] = field(default_factory=lambda: [(0.0, [])])
    ended: list[Hypothesis] = field(default_factory=list)

    def extend(self, values: list[list[float]], tokens: list[list[int]]) -> list[tuple[int, int]]:
        """Take the best continuations; return the parent and the token of each that grows on.

        An answer that ends leaves its place empty: the beam narrows (Sutskever et al. 2014, section 3.2).
        """
        candidates = [
            (total + value, parent, token)
            for parent, (total, _) in enumerate(self.growing)
            for value, token in zip(values[parent], tokens[parent], strict=True)
            if value > float("-inf")
        ]
        candidates.sort(key=lambda found: -found[0])
        before, self.growing, kept = self.growing, [], []
        for total, parent, token in candidates[: self.width - len(self.ended)]:
            ids = [*before[parent][1], token]
            reason = self._reason(ids)
            if reason is None:
                self.growing.append((total, ids))
                kept.append((parent, token))
            else:
                self.ended.append(Hypothesis(ids, total, total / self.penalty(len(ids)), reason))
        return kept

    def settled(self, wanted: int) -> bool:
        """Whether nothing that still grows can enter the best ``wanted``: totals only fall, penalties only rise."""
        if not self.growing:
            return True
        longest = min(self.limits.max_new_tokens, self.remaining + 1)
        bound = self.growing[0][0] / self.penalty(longest)
        return sum(found.score >= bound for found in self.ended) >= wanted

    def places(self, before: Sequence[int]) -> list[Place]:
        """Return where each hypothesis goes on."""
        return [Place(before, ids, self.limits.max_new_tokens) for _, ids in self.growing]

    def best(self, wanted: int) -> list[Hypothesis]:
        return sorted(self.ended, key=lambda found: -found.score)[:wanted]

    def _reason(self, ids: list[int]) -> FinishReason | None:
        if ids[-1] in self.limits.end:
            return "end"
        if len(ids) >= self.limits.max_new_tokens:
            return "length"
        return "context" if len(ids) > self.remaining else None


@torch.no_grad()
def beam_search(
    model: DecodingModel,
    prompts: Sequence[Sequence[int]],
    limits: Limits,
    width: int,
    *,
    penalty: Penalty = LengthPenalty(),
    answers: int = 1,
    vocabulary: int | None = None,
    device: torch.device | None = None,
    beyond_source: int | None = None,
) -> list[list[Hypothesis]]:
    """Return the best ``answers`` of every prompt, following ``width`` hypotheses of each at once.

    A width of 1 is greedy decoding; one that drops nothing is exhaustive. A source's answers do not depend on
    its neighbours. Stop strings belong to sampling and are not looked at.

    Args:
        model: what writes, dropout off.
        prompts: token ids; of an encoder-decoder the sources.
        limits: when an answer ends.
        width: hypotheses kept a source.
        penalty: of lengths.
        answers: how many to return, at most the width.
        vocabulary: the number of ids that the tokenizer can spell, where the model has more.
        device: where the model is.
        beyond_source: how many tokens an answer may have more than its prompt; the Transformer had 50.

    Raises:
        UsageError: an empty prompt or one longer than the context, a width below 1, more answers than the width.
        RunError: the model's logits are not numbers.
    """
    check_prompts(prompts, limits)
    if not 1 <= answers <= width:
        raise UsageError(f"{answers} answers of {width} beams", "num_beams must be at least 1, and no less than these")
    logits_NV, session = model.start(*_start(prompts, limits, device))
    each = [_within(limits, len(prompt), beyond_source) for prompt in prompts]
    beams = [_Beam(own, penalty, width, own.context - taken) for own, taken in zip(each, session.lengths, strict=True)]
    live, begun = list(range(len(beams))), beginnings(model, prompts)
    while True:
        parents, tokens, going, row = [], [], [], 0
        places = [beams[source].places(begun[source]) for source in live]
        values, ids = _best(logits_NV, width, vocabulary, limits.constraints, [one for some in places for one in some])
        for source in live:
            beam, rows = beams[source], slice(row, row + len(beams[source].growing))
            kept = beam.extend(values[rows], ids[rows])
            if not beam.settled(answers):
                parents += [row + parent for parent, _ in kept]
                tokens += [[token] for _, token in kept]
                going.append(source)
            row = rows.stop
        if not going:
            return [beam.best(answers) for beam in beams]
        live, session = going, session.select(parents)
        logits_NV = model.step(torch.tensor(tokens, device=logits_NV.device), session)[:, -1]


def exhaustive(
    model: DecodingModel,
    prompt: Sequence[int],
    limits: Limits,
    *,
    penalty: Penalty = LengthPenalty(),
) -> list[Hypothesis]:
    """Return every answer that ``limits`` allow, best first: the definition that beams approach.

    Raises:
        UsageError: there are more than a million.
    """
    logits_1V, _ = model.start(*_start([prompt], limits, None))
    size = logits_1V.shape[-1] ** limits.max_new_tokens
    if size > MOST_ANSWERS:
        raise UsageError(
            f"{size:,} answers are too many to look at all of them", "lower max_new_tokens, or use beam_search"
        )
    return beam_search(model, [prompt], limits, size, penalty=penalty, answers=size)[0]


def refuse_with_beams(**settings: Any) -> None:
    """Refuse settings of sampling beside beams, which draw nothing.

    Raises:
        UsageError: one of them is given.
    """
    given = [name for name, value in settings.items() if value not in (None, 0, 1, (), "", [])]
    if given:
        raise UsageError(f"{', '.join(given)} cannot be used with num_beams", "search with beams, or draw tokens")


def _within(limits: Limits, length: int, beyond: int | None) -> Limits:
    """Return the limits of the answer to a prompt of so many tokens."""
    if beyond is None:
        return limits
    return replace(limits, max_new_tokens=min(limits.max_new_tokens, length + beyond))


def _start(
    prompts: Sequence[Sequence[int]], limits: Limits, device: torch.device | None
) -> tuple[Tensor, int, list[int] | None]:
    ids_BL, lengths = padded(prompts, device)
    return ids_BL, limits.context, lengths


def _best(
    logits_NV: Tensor, width: int, vocabulary: int | None, constraints: Constraints, places: Sequence[Place]
) -> tuple[list[list[float]], list[list[int]]]:
    """Return the log probabilities and ids of each row's best tokens: no source needs more than ``width`` of a row."""
    check_logits(logits_NV)
    if vocabulary is not None:
        logits_NV = VocabularyLimit(vocabulary)(logits_NV, torch.zeros_like(logits_NV, dtype=torch.bool))
    logp_NV = logits_NV.to(torch.promote_types(logits_NV.dtype, torch.float32)).log_softmax(-1)
    logp_NV = constraints(logp_NV, places)
    best = logp_NV.topk(min(width, logp_NV.shape[-1]))
    return best.values.tolist(), best.indices.tolist()
