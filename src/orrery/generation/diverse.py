"""Diverse beam search: groups of beams, each of which avoids what the groups before it have just chosen."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import final

import torch
from torch import Tensor

from orrery.errors import UsageError
from orrery.generation.beams import Hypothesis, NarrowingBeam
from orrery.generation.generate import beginnings, check_prompts
from orrery.generation.next_token import check_logits
from orrery.generation.row import Limits
from orrery.generation.search import USUAL, Penalty, log_probabilities
from orrery.models.protocols import DecodingModel


@torch.no_grad()
def diverse_beam_search(
    model: DecodingModel,
    prompt: Sequence[int],
    limits: Limits,
    width: int,
    groups: int,
    *,
    diversity: float = 0.5,
    penalty: Penalty = USUAL,
    vocabulary: int | None = None,
    device: torch.device | None = None,
) -> list[list[Hypothesis]]:
    """Return the best answers of each group, for one prompt (Vijayakumar et al. 2018, algorithm 1).

    At each step the groups choose one after another; a later one sees ``log p - diversity * n`` for a token that
    earlier groups have chosen ``n`` times at this step (Hamming diversity). What is taken off stays in the scores by
    which a group ranks, as in the paper; the log probabilities that are returned are the model's.

    Args:
        model: what writes, dropout off.
        prompt: token ids; of an encoder-decoder the source.
        limits: when an answer ends.
        width: hypotheses of all groups.
        groups: into how many the width is divided; 1 is a beam search.
        diversity: lambda, what a repeated choice costs, in nats.
        penalty: of lengths.
        vocabulary: the number of ids that the tokenizer can spell, where the model has more.
        device: where the model is.

    Raises:
        UsageError: a width that the groups do not divide, or a diversity below 0.
        RunError: the model's logits are not numbers.
    """
    check_prompts([prompt], limits)
    if groups < 1 or width < groups or width % groups:
        raise UsageError(f"{groups} groups of {width} beams", "give a number of beams that the groups divide")
    if not 0 <= diversity < float("inf"):
        raise UsageError(f"diversity_penalty = {diversity} is not possible", "it must be at least 0")
    logits_NV, session = model.start(torch.tensor([list(prompt)], device=device), limits.context)
    room, begun = limits.context - session.lengths[0], beginnings(model, [prompt])[0]
    each = [_Group(NarrowingBeam(limits, penalty, width // groups, room), diversity) for _ in range(groups)]
    live, session, logits_NV = each, session.select([0] * groups), logits_NV.expand(groups, -1)
    while True:
        check_logits(logits_NV)
        chosen: Counter[int] = Counter()
        parents, tokens, going, row = [], [], [], 0
        for group in live:
            rows = slice(row, row + len(group.beam.growing))
            places = group.beam.places(begun)
            kept = group.extend(log_probabilities(logits_NV[rows], vocabulary, limits.constraints, places), chosen)
            if not group.beam.settled(width // groups):
                parents += [row + parent for parent, _ in kept]
                tokens += [[token] for _, token in kept]
                going.append(group)
            row = rows.stop
        if not going:
            return [group.best() for group in each]
        live, session = going, session.select(parents)
        logits_NV = model.step(torch.tensor(tokens, device=logits_NV.device), session)[:, -1]


@final
class _Group:
    """The beams of one group, and what was taken off each of its ways for choices that others had made."""

    def __init__(self, beam: NarrowingBeam, diversity: float) -> None:
        self.beam, self._diversity = beam, diversity
        self._taken: dict[tuple[int, ...], float] = {(): 0.0}

    def extend(self, logp_NV: Tensor, chosen: Counter[int]) -> list[tuple[int, int]]:
        """Take the best continuations and count them as chosen; return the parent and the token of each that grows."""
        cost_V = torch.zeros(logp_NV.shape[1], dtype=logp_NV.dtype)
        for token, times in chosen.items():
            cost_V[token] = self._diversity * times
        best = (logp_NV - cost_V.to(logp_NV.device)).topk(min(self.beam.reach, logp_NV.shape[1]))
        ended = len(self.beam.ended)
        kept = self.beam.extend(best.values.tolist(), best.indices.tolist())
        for ids in [ids for _, ids in self.beam.growing] + [answer.ids for answer in self.beam.ended[ended:]]:
            self._taken[*ids] = self._taken[*ids[:-1],] + float(cost_V[ids[-1]])
            chosen[ids[-1]] += 1
        return kept

    def best(self) -> list[Hypothesis]:
        """Return the answers, with the log probabilities of the model."""
        return [
            replace(answer, log_probability=answer.log_probability + self._taken[*answer.ids])
            for answer in self.beam.best(self.beam.width)
        ]
