"""What does it cost to score a place: additive (Bahdanau) or multiplicative (Luong)?

Bahdanau's score sends every place through a hidden layer at every step; Luong's is one product, and "concat" is
Bahdanau's again. All learn the same task; parameters and what training must keep are held, the time is only drawn.
"""

import statistics
import time
from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor

from orrery.models.encoder_decoder import EncoderDecoder
from orrery.nn.attention.alignment_score import AlignmentScore
from orrery.objectives.seq2seq import SequenceToSequence
from orrery.reports.figures import bar_chart
from orrery.studies.fitting import build, fit, parameters
from orrery_course.labs._lab import Numbers
from orrery_course.labs._pairs import FIRST, ReversedPairs, accuracy, translator

WIDTH, RATE = 32, 0.01
TASK, STEPS, SOURCE = ReversedPairs(20, 64, 2, 8), 400, 50
QUICK_TASK, QUICK_STEPS = ReversedPairs(10, 64, 2, 8), 300
REPEATS = 100
ENOUGH = 0.9
MODELS = {
    "additive (Bahdanau)": ("rnnsearch", {}),
    "dot (Luong)": ("luong", {"score": "dot"}),
    "general (Luong)": ("luong", {"score": "general"}),
    "concat (Luong)": ("luong", {"score": "concat"}),
}


def run(seed: int, quick: bool = False) -> Numbers:
    """Train each model to write backwards; return accuracy, parameters and costs of its score."""
    task, steps = (QUICK_TASK, QUICK_STEPS) if quick else (TASK, STEPS)
    numbers = {}
    for name, (family, score) in MODELS.items():
        model = build(family, seed, {**translator(family, task.vocabulary, WIDTH), **score})
        fit(model, SequenceToSequence(), task, steps, RATE, seed)
        scoring = scoring_of(model)
        numbers[name] = {
            "accuracy": accuracy(model, task.of_length(task.longest, torch.Generator().manual_seed(seed + 1000))),
            "parameters": parameters(scoring),
            "kept": kept(scoring, model.spec.reader.out_width(WIDTH)),
            "microseconds": 1e6 * score_time(scoring, model.spec.reader.out_width(WIDTH)),
            "microseconds of a whole step": 1e6 * step_time(model),
        }
    return numbers


def scoring_of(model: EncoderDecoder) -> AlignmentScore:
    """Return the part of the model that scores."""
    return next(part for part in model.modules() if isinstance(part, AlignmentScore))


def inputs(scoring: AlignmentScore, encoder_width: int) -> tuple[Tensor, Tensor]:
    """Return a state and the keys of one source."""
    rng = torch.Generator().manual_seed(0)
    q_BD, encoder_states_BSM = (
        torch.randn(1, WIDTH, generator=rng),
        torch.randn(1, SOURCE, encoder_width, generator=rng),
    )
    with torch.no_grad():
        return q_BD.requires_grad_(), scoring.keys(encoder_states_BSM).requires_grad_()


def kept(scoring: AlignmentScore, encoder_width: int) -> int:
    """Return how many new numbers one step's scores leave behind for the backward pass, beside state and keys."""
    q_BD, keys_BSE = inputs(scoring, encoder_width)
    known = {value.untyped_storage().data_ptr() for value in (q_BD, keys_BSE, *scoring.parameters())}
    storages: dict[int, Tensor] = {}

    def keep(value: Tensor) -> Tensor:
        if value.untyped_storage().data_ptr() not in known:
            storages[value.untyped_storage().data_ptr()] = value
        return value

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda value: value):
        scoring(q_BD, keys_BSE)
    return sum(value.numel() for value in storages.values())


@torch.no_grad()
def score_time(scoring: AlignmentScore, encoder_width: int) -> float:
    """Return the median seconds that one step's scores take; what depends on the source alone is done before."""
    q_BD, keys_BSE = inputs(scoring, encoder_width)
    return median_time(lambda: scoring(q_BD, keys_BSE))


@torch.no_grad()
def step_time(model: EncoderDecoder) -> float:
    """Return the median seconds of a step of greedy decoding."""
    _, session = model.start(torch.full((1, SOURCE), FIRST), REPEATS + 1)
    return median_time(lambda: model.step(torch.full((1, 1), FIRST), session))


def median_time(act: Callable[[], object]) -> float:
    """Return the median seconds that it takes."""
    taken = []
    for _ in range(REPEATS):
        begun = time.perf_counter()
        act()
        taken.append(time.perf_counter() - begun)
    return statistics.median(taken)


def margins(numbers: Numbers) -> Mapping[str, float]:
    """Hold equal accuracy, and the costs by their counts."""
    additive, dot, general, concat = (numbers[name] for name in MODELS)
    return {
        f"every score learns the task to {ENOUGH:.0%}": min(one["accuracy"] for one in numbers.values()) - ENOUGH,
        "dot has no parameters": 0.0 - dot["parameters"],
        "general has fewer than concat": float(concat["parameters"] - general["parameters"] - 1),
        "the additive ones keep a hidden layer for every place": min(additive["kept"], concat["kept"]) - SOURCE * WIDTH,
        "the multiplicative ones keep nothing": 0.0 - float(max(dot["kept"], general["kept"])),
    }


def figure(runs: Sequence[Numbers]) -> str:
    """Draw the median time over the seeds, beside each score its parameters."""
    times = {
        f"{name.split()[0]}: {runs[0][name]['parameters']:,} parameters": statistics.median(
            one[name]["microseconds"] for one in runs
        )
        for name in MODELS
    }
    title = f"AlignmentScore the {SOURCE} places of a source, once a step"
    return bar_chart(times, title=title, x_label="microseconds")
