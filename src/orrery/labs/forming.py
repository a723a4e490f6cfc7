"""When does a model learn to repeat, and which heads appear at that moment?

Two layers of attention learn to go on with what comes a second time (Olsson et al. 2022): for a while nothing happens,
then heads that look by induction form within few steps, and the loss on the repeated tokens falls with them. One layer
has no such heads, and its loss does not fall.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch

from orrery.labs._fit import fit
from orrery.labs._lab import Numbers
from orrery.labs.induction import CONFIG, RATE, Repeated, attention_only, looks
from orrery.objectives.causal import CausalLanguageModel
from orrery.reports.figures import line_chart

STEPS, EVERY = 900, 30
QUICK_STEPS = 600
FORMED, ABSENT, TOGETHER = 0.5, 0.25, 0.9


def run(seed: int, quick: bool = False) -> Numbers:
    """Train one layer and two; return the loss on repeated tokens and the best heads' scores as they are trained."""
    steps = QUICK_STEPS if quick else STEPS
    return {f"{layers} layers": history(layers, steps, seed) for layers in (1, 2)}
