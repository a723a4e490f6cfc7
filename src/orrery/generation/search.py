"""Search: the answers with the greatest score, followed a few at once (beam) or all of them (exhaustive)."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from orrery.errors import UsageError
from orrery.generation.beams import Beam, HuggingFacePenalty, Hypothesis, LengthPenalty, NarrowingBeam, Penalty
from orrery.generation.constraints import Constraints, TokenPlace
from orrery.generation.coverage import Coverage, Unwatched
from orrery.generation.filters import VocabularyLimit
from orrery.generation.generate import beginnings, check_prompts, padded
from orrery.generation.next_token import check_logits
from orrery.generation.row import Limits
from orrery.models.protocols import DecodingModel

__all__ = [
    "HuggingFacePenalty",
    "Hypothesis",
    "LengthPenalty",
    "Penalty",
    "beam_search",
    "exhaustive",
]

USUAL = LengthPenalty()
"""What answers are ranked by unless told otherwise."""

MOST_ANSWERS = 1_000_000
"""Sequences that an exhaustive search looks at; beyond that a user waits for hours."""


@torch.no_grad()
def beam_search(
    model: DecodingModel,
    prompts: Sequence[Sequence[int]],
    limits: Limits,
    width: int,
    *,
    penalty: Penalty = USUAL,
    answers: int = 1,
    vocabulary: int | None = None,
    device: torch.device | None = None,
    beyond_source: int | None = None,
    beam: Callable[..., Beam] = NarrowingBeam,
    coverage_penalty: float = 0.0,
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
        beam: how hypotheses end.
        coverage_penalty: beta of ``Coverage``: answers that leave a part of the source out rank lower.

    Raises:
        UsageError: an empty prompt or one longer than the context, a width below 1, more answers than the width.
        RunError: the model's logits are not numbers.
    """
    _check(prompts, limits, answers, width)
    watch = Coverage(model, coverage_penalty, list(map(len, prompts))) if coverage_penalty else Unwatched(model)
    logits_NV, session = watch.start(*_start(prompts, limits, device))
    each = [_within(limits, len(prompt), beyond_source) for prompt in prompts]
    beams = [beam(own, penalty, width, own.context - taken) for own, taken in zip(each, session.lengths, strict=True)]
    live, begun = list(range(len(beams))), beginnings(model, prompts)
    while True:
        parents, tokens, going, row = [], [], [], 0
        places = [beams[source].places(begun[source]) for source in live]
        values, ids = _best(
            logits_NV, beams[0].reach, vocabulary, limits.constraints, [place for some in places for place in some]
        )
        for source in live:
            one, rows = beams[source], slice(row, row + len(beams[source].growing))
            one.added = watch.added(source, rows)
            kept = one.extend(values[rows], ids[rows])
            if not one.settled(answers):
                parents += [row + parent for parent, _ in kept]
                tokens += [[token] for _, token in kept]
                going.append(source)
            row = rows.stop
        if not going:
            return [one.best(answers) for one in beams]
        live, session = going, session.select(parents)
        logits_NV = watch.step(torch.tensor(tokens, device=logits_NV.device), session, parents)[:, -1]


def exhaustive(
    model: DecodingModel,
    prompt: Sequence[int],
    limits: Limits,
    *,
    penalty: Penalty = USUAL,
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


def _check(prompts: Sequence[Sequence[int]], limits: Limits, answers: int, width: int) -> None:
    check_prompts(prompts, limits)
    if not 1 <= answers <= width:
        raise UsageError(f"{answers} answers of {width} beams", "follow at least 1 beam, and no fewer than the answers")


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


def log_probabilities(
    logits_NV: Tensor, vocabulary: int | None, constraints: Constraints, places: Sequence[TokenPlace]
) -> Tensor:
    """Return the log probability of each token where it may be chosen, in float32 at least."""
    if vocabulary is not None:
        logits_NV = VocabularyLimit(vocabulary)(logits_NV)
    logp_NV = logits_NV.to(torch.promote_types(logits_NV.dtype, torch.float32)).log_softmax(-1)
    return constraints(constraints.penalised(logp_NV, places), places)


def _best(
    logits_NV: Tensor, width: int, vocabulary: int | None, constraints: Constraints, places: Sequence[TokenPlace]
) -> tuple[list[list[float]], list[list[int]]]:
    """Return the log probabilities and ids of each row's best tokens: no source needs more than ``width`` of a row."""
    check_logits(logits_NV)
    logp_NV = log_probabilities(logits_NV, vocabulary, constraints, places)
    best = logp_NV.topk(min(width, logp_NV.shape[-1]))
    return best.values.tolist(), best.indices.tolist()
