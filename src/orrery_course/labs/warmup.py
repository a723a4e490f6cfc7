"""Does a Transformer need a warm-up, and does it depend on where the norm stands?

Xiong et al. 2020: with the norm behind each sum (post-LN, Vaswani et al. 2017) the gradients of the last layers are
large at first, and a rate that is high from the beginning ruins the model; a warm-up saves a shallow one. With the norm
in front (pre-LN) a shallow one needs none, and a deep one learns with it. Weights begin by Glorot's rule.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn

from orrery.objectives.causal import CausalLanguageModel
from orrery.reports.figures import line_chart
from orrery.studies.fitting import build, falling, fit, warmed_up
from orrery_course.labs._curves import mean
from orrery_course.labs._lab import Numbers
from orrery_course.labs.recall import Delayed

VOCABULARY, LENGTH, ROWS, RATE, STEPS, LAST = 8, 16, 16, 0.01, 150, 10
DEPTHS, QUICK_DEPTHS = (6, 12, 24, 48), (6, 12)
CONFIG = {
    "vocab_size": VOCABULARY, "n_embd": 16, "n_head": 2, "n_positions": LENGTH, "tie_word_embeddings": False,
    "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0,
}  # fmt: skip
NORMS = {"pre-LN": "gpt2", "post-LN": "openai_gpt"}
STARTS = {"without warm-up": falling, "with warm-up": warmed_up(0.4)}
LEARNED, LOST, SAVED = 1.2, 1.9, 0.5
"""Nats a word; a model that has learned nothing has log 8 = 2.08. The last is what a warm-up must be worth."""


def run(seed: int, quick: bool = False) -> Numbers:
    """Train both at every depth with and without a warm-up, and return the loss of the last steps in nats."""
    depths = QUICK_DEPTHS if quick else DEPTHS
    losses_by_depth: dict[str, dict[str, float]] = {}
    for norm, family in NORMS.items():
        for start, schedule in STARTS.items():
            for depth in depths:
                model = glorot(build(family, seed, {**CONFIG, "n_layer": depth}), seed)
                task = Delayed(1, VOCABULARY, LENGTH, ROWS)
                losses = fit(model, CausalLanguageModel(), task, STEPS, RATE, seed, schedule=schedule)
                losses_by_depth.setdefault(f"{norm}, {start}", {})[str(depth)] = sum(losses[-LAST:]) / LAST
    return {"loss": losses_by_depth}


@torch.no_grad()
def glorot(model: Any, seed: int) -> Any:
    """Draw every matrix evenly from ``+- sqrt(6 / (in + out))``, biases 0 (Glorot and Bengio 2010), from the seed."""
    rng = torch.Generator().manual_seed(seed)
    for part in model.modules():
        if isinstance(part, nn.Linear):
            nn.init.xavier_uniform_(part.weight, generator=rng)
            if part.bias is not None:
                part.bias.zero_()
    return model


def margins(numbers: Numbers) -> Mapping[str, float]:
    """Hold the shallowest and the deepest of each."""
    losses = numbers["loss"]
    shallow, deep = (str(choose(map(int, losses["pre-LN, with warm-up"]))) for choose in (min, max))
    post, saved = losses["post-LN, without warm-up"], losses["post-LN, with warm-up"]
    return {
        f"post-LN of {shallow} layers with a warm-up comes below {LEARNED}": LEARNED - saved[shallow],
        f"without one it ends higher by {SAVED} or more": post[shallow] - saved[shallow] - SAVED,
        f"pre-LN of {shallow} layers comes below it without one": LEARNED - losses["pre-LN, without warm-up"][shallow],
        f"pre-LN of {deep} layers comes below it with one": LEARNED - losses["pre-LN, with warm-up"][deep],
        f"post-LN of {deep} layers stays above {LOST} without one": post[deep] - LOST,
    }


def figure(runs: Sequence[Numbers]) -> str:
    """Draw the mean over the seeds."""
    series = {name: mean(runs, "loss", name) for name in runs[0]["loss"]}
    title = f"Loss after {STEPS} steps at the rate {RATE:g}, by depth"
    return line_chart(series, title=title, x_label="layers", y_label="nats a word", log_x=True)
