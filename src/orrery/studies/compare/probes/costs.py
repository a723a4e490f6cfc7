"""Probes of cost by length, on new models as large as the compared one: time of training and decoding, and memory."""

import time
from collections.abc import Callable
from statistics import median

import torch

from orrery.objectives.causal import CausalLanguageModel
from orrery.studies.compare.probes.subject import Curve, ProbeSubject

LENGTHS = (64, 256, 1024)
LONG = (64, 256, 1024, 4096)
TOKENS, ROUNDS, WRITTEN = 1024, 3, 16
"""The least tokens of a batch of training, how often each is timed, and the tokens that are written one by one."""


def training_speed(subject: ProbeSubject) -> Curve:
    """Return the tokens a second of a forward and a backward pass, by the length of the rows."""
    model, objective = subject.whole(max(LENGTHS)).train(), CausalLanguageModel()

    def seconds(length: int) -> float:
        rows = max(1, TOKENS // length)
        ids_BL = torch.randint(subject.vocabulary, (rows, length + 1))
        batch = {"ids": ids_BL[:, :-1], "targets": ids_BL[:, 1:]}

        def once() -> None:
            model.zero_grad(set_to_none=True)
            for term in objective.loss(model, batch).values():
                (term.sum / term.count).backward()

        return timed(once) / (rows * length)

    return {str(length): 1 / seconds(length) for length in LENGTHS}


@torch.no_grad()
def decoding_speed(subject: ProbeSubject) -> Curve:
    """Return the tokens a second that one row is written at, by the number of tokens before."""
    model = subject.whole(max(LENGTHS) + WRITTEN * (ROUNDS + 1)).eval()
    rates = {}
    for length in LENGTHS:
        ids_BL = torch.randint(subject.vocabulary, (1, length))
        _, session = model.start(ids_BL, length + WRITTEN * (ROUNDS + 1))

        def once(session: object = session) -> None:
            for _ in range(WRITTEN):
                model.step(torch.zeros(1, 1, dtype=torch.long), session)

        rates[str(length)] = WRITTEN / timed(once)
    return rates


@torch.no_grad()
def memory(subject: ProbeSubject) -> Curve:
    """Return the kilobytes that a decoding session of one row holds, by the number of tokens that it has taken."""
    model, kilobytes = subject.whole(max(LONG)).eval(), {}
    for length in LONG:
        _, session = model.start(torch.randint(subject.vocabulary, (1, length)), length)
        kilobytes[str(length)] = session.bytes() / 1e3
    return kilobytes


def timed(once: Callable[[], None]) -> float:
    """Return the median of the seconds of a few rounds, after one that is not counted."""
    taken = []
    for _ in range(ROUNDS + 1):
        began = time.perf_counter()
        once()
        taken.append(time.perf_counter() - began)
    return median(taken[1:])
