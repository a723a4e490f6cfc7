"""Where does attention look while it writes a sentence backwards?

At the end first, then one word to the left a step: nobody told it. Bahdanau et al. 2015, figure 3, shows the like for
English and French.
"""

from collections.abc import Mapping, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from orrery.inspection.trace import trace
from orrery.objectives.seq2seq import SequenceToSequence
from orrery.reports.figures import heat_map
from orrery.studies.fitting import build, fit
from orrery_course.labs._lab import Numbers
from orrery_course.labs._pairs import FIRST, ReversedPairs, accuracy, translator

WIDTH, STEPS, RATE = 32, 400, 0.01
TASK, QUICK_TASK, QUICK_STEPS = ReversedPairs(20, 64, 2, 10), ReversedPairs(10, 64, 2, 6), 350
NEAR, RIGHT = 0.8, 0.9


def run(seed: int, quick: bool = False) -> Numbers:
    """Train RNNsearch and return where it looks in sentences of the greatest length."""
    task, steps = (QUICK_TASK, QUICK_STEPS) if quick else (TASK, STEPS)
    model = build("rnnsearch", seed, translator("rnnsearch", task.vocabulary, WIDTH))
    fit(model, SequenceToSequence(), task, steps, RATE, seed)
    batch = task.of_length(task.longest, torch.Generator().manual_seed(seed + 1000))
    pattern_BLS = trace(model, batch["source"], batch["ids"], keep=("*.pattern",))["blocks.0.cross.pattern"][:, 0]
    return {
        "accuracy": accuracy(model, batch),
        "near the anti-diagonal": near_antidiagonal(pattern_BLS[:, :-1]),
        "words": [f"w{int(word) - FIRST}" for word in batch["source"][0]],
        "pattern": pattern_BLS[0, :-1].tolist(),
    }


def near_antidiagonal(pattern_BLL: Float[Tensor, "B L L"], distance: int = 1) -> float:
    """Return the part of the weight that step t gives to places within ``distance`` of place L - 1 - t."""
    place_L = torch.arange(pattern_BLL.shape[-1])
    near_LL = (place_L[:, None] + place_L - (len(place_L) - 1)).abs() <= distance
    return float((pattern_BLL * near_LL).sum(-1).mean())


def margins(numbers: Numbers) -> Mapping[str, float]:
    """Hold the weight near the anti-diagonal, and that it is of use."""
    near = numbers["near the anti-diagonal"]
    return {
        f"{NEAR:.0%} of the weight lies within one place of the anti-diagonal": near - NEAR,
        f"{RIGHT:.0%} of the words are written in their places": numbers["accuracy"] - RIGHT,
    }


def figure(runs: Sequence[Numbers]) -> str:
    """Draw one sentence of the first seed: steps down, words of the source across."""
    words = runs[0]["words"]
    title = "Attention while a sentence is written backwards"
    return heat_map(runs[0]["pattern"], rows=words[::-1], columns=words, title=title, highest=1.0)
