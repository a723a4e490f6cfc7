"""Probes that train small models on made-up texts: associative recall, copying and induction."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from orrery.models.inputs import Batch
from orrery.nn.cross_entropy import IGNORED
from orrery.objectives.causal import CausalLanguageModel
from orrery.studies.compare.probes.repeated import VOCABULARY, Repeated
from orrery.studies.compare.probes.subject import Curve, ProbeSubject
from orrery.studies.compare.probes.tasks import Copies, RecallPairs
from orrery.studies.fitting import fit

ROWS, TESTED = 64, 128
RATES = (3e-3, 1e-2)
"""Each model is trained with both, unless all is right with the first; the one that is right more often counts."""
PAIRS, TEXTS, BEYOND = (2, 4, 8), (4, 8, 16), 32


@dataclass(frozen=True)
class MixedTask:
    """Batches of one task whose size is drawn again for each."""

    task: RecallPairs | Copies
    sizes: Sequence[int]

    def __call__(self, rng: torch.Generator) -> Batch:
        """Draw a batch."""
        size = self.sizes[int(torch.randint(len(self.sizes), (), generator=rng))]
        return self.task.rows(ROWS, size, rng)


def recall(subject: ProbeSubject) -> Curve:
    """Return the part of the values recalled, by the number of pairs."""
    return sized(subject, RecallPairs(), PAIRS, PAIRS)


def copying(subject: ProbeSubject) -> Curve:
    """Return the part of the tokens copied, by the length of the text; the last is longer than any that is learned."""
    return sized(subject, Copies(), TEXTS, (*TEXTS, BEYOND))


def sized(subject: ProbeSubject, task: RecallPairs | Copies, learned: Sequence[int], tested: Sequence[int]) -> Curve:
    """Return the part that is right by the size of the task."""

    def judge(model: Any, rng: torch.Generator) -> Curve:
        return {str(size): right(model, task.rows(TESTED, size, rng)) for size in tested}

    return best(subject, task.vocabulary, task.length(max(tested)), MixedTask(task, learned), judge)


def induction(subject: ProbeSubject) -> Curve:
    """Return the part of the repeated tokens that is right, by the place in the repeat."""
    task = Repeated(rows=ROWS // 2)

    def judge(model: Any, rng: torch.Generator) -> Curve:
        batch = Repeated(rows=TESTED)(rng)
        places = range(task.new, task.new + task.again - 1)
        return {str(place - task.new + 1): right(model, _only(batch, place)) for place in places}

    return best(subject, VOCABULARY, task.new + task.again, task, judge)


def _only(batch: Batch, place: int) -> Batch:
    targets_BL = torch.full_like(batch["targets"], IGNORED)
    targets_BL[:, place] = batch["targets"][:, place]
    return {"ids": batch["ids"], "targets": targets_BL}


def best(
    subject: ProbeSubject,
    vocabulary: int,
    length: int,
    batch: Callable[[torch.Generator], Batch],
    judge: Callable[[Any, torch.Generator], Curve],
) -> Curve:
    """Return the mean over the seeds of what small models reach, each at the better of the two rates."""
    curves = []
    for seed in subject.seeds:
        tried = []
        for rate in RATES:
            model = subject.small(vocabulary, length, seed)
            fit(model, CausalLanguageModel(), batch, subject.steps, rate, seed)
            tried.append(judge(model, torch.Generator().manual_seed(seed + 1000)))
            if min(tried[-1].values()) == 1:
                break
        curves.append(max(tried, key=lambda curve: sum(curve.values())))
    return {place: sum(curve[place] for curve in curves) / len(curves) for place in curves[0]}


@torch.no_grad()
def right(model: Any, batch: Batch) -> float:
    """Return the part of the tokens asked for that the model says."""
    asked_BL = batch["targets"] != IGNORED
    return float((model.logits(batch["ids"]).argmax(-1) == batch["targets"])[asked_BL].double().mean())
