"""How much of the gradient is left when it comes to a word many steps back?

Hochreiter 1991, Bengio, Simard and Frasconi 1994: through an Elman network it shrinks or grows by about the same factor
every step. An LSTM whose forget gates begin open hands it on (Gers et al. 2000), a Transformer looks back directly.
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import nn

from orrery.inspection.gradient_distance import gradient_by_distance
from orrery.models.decoder import Decoder
from orrery.objectives.causal import CausalLanguageModel
from orrery.reports.figures import line_chart
from orrery.studies.fitting import build, fit
from orrery_course.labs._lab import Numbers
from orrery_course.labs.recall import Delayed

VOCABULARY, WIDTH, LENGTH, ROWS = 16, 32, 40, 32
STEPS, QUICK_STEPS, RATE = 200, 30, 3e-3
TASK = Delayed(4, VOCABULARY, LENGTH, ROWS)
RECURRENT = {"vocab_size": VOCABULARY, "hidden_size": WIDTH, "num_layers": 1, "max_position_embeddings": LENGTH}
TRANSFORMER = {
    "vocab_size": VOCABULARY, "n_embd": WIDTH, "n_layer": 2, "n_head": 4, "n_positions": LENGTH,
    "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0,
}  # fmt: skip
SMALL, LARGE = "RNN, small weights", "RNN, large weights"
SHUT, OPEN = "LSTM, forget bias 0", "LSTM, forget bias 3"
TRANSFORMER_NAME = "Transformer"
RADIUS = {SMALL: 0.5, LARGE: 1.2}
QUIET = 1e-5
"""1.2 to the power of 40 is 1,500: a louder word would reach the bend of tanh, which hides the explosion."""
FORGET = {SHUT: 0.0, OPEN: 3.0}
"""sigmoid(3): 0.95 of a cell is kept a step; sigmoid(0): half of it."""
NEAR, FAR = 2, 36
"""Distances between which a slope is taken; the first steps are those of the output layer."""
NOTHING = 1e-30
"""Below it float32 knows no gradient; a logarithm needs a number."""


def models(seed: int) -> dict[str, Decoder]:
    """Return the five networks, untrained."""
    networks = {name: with_radius(build("elman_rnn", seed, RECURRENT), radius, seed) for name, radius in RADIUS.items()}
    networks |= {name: with_forget_bias(build("lstm", seed, RECURRENT), bias) for name, bias in FORGET.items()}
    return {**networks, TRANSFORMER_NAME: build("gpt2", seed, TRANSFORMER)}


@torch.no_grad()
def with_radius(model: Decoder, radius: float, seed: int) -> Decoder:
    """Make every recurrent matrix ``radius`` times an orthogonal one; among quiet words tanh is nearly linear."""
    rng = torch.Generator().manual_seed(seed)
    for engine in (module for module in model.modules() if isinstance(module, nn.RNN)):
        weights = dict(engine.named_parameters())
        weights["weight_hh_l0"].copy_(radius * nn.init.orthogonal_(torch.empty(WIDTH, WIDTH), generator=rng))
        weights["bias_hh_l0"].zero_()
        weights["bias_ih_l0"].zero_()
    model.embed.token.weight.mul_(QUIET)
    return model


@torch.no_grad()
def with_forget_bias(model: Decoder, bias: float) -> Decoder:
    """Set the bias of the forget gates, of which torch has two that are added."""
    for engine in (module for module in model.modules() if isinstance(module, nn.LSTM)):
        weights = dict(engine.named_parameters())
        weights["bias_ih_l0"][WIDTH : 2 * WIDTH] = bias
        weights["bias_hh_l0"][WIDTH : 2 * WIDTH] = 0.0
    return model


def run(seed: int, quick: bool = False) -> Numbers:
    """Return the gradient by distance of each network, as it begins and after a short training."""
    rng = torch.Generator().manual_seed(seed)
    ids_BL = torch.randint(VOCABULARY, (ROWS, LENGTH + 1), generator=rng)
    norms_by_distance: dict[str, dict[str, list[float]]] = {"begin": {}, "trained": {}}
    for name, model in models(seed).items():
        norms_by_distance["begin"][name] = gradient_by_distance(model.eval(), ids_BL)
        fit(model, CausalLanguageModel(), TASK, QUICK_STEPS if quick else STEPS, RATE, seed)
        norms_by_distance["trained"][name] = gradient_by_distance(model, ids_BL)
    factors = {
        when: {name: factor(norms) for name, norms in curves.items()} for when, curves in norms_by_distance.items()
    }
    return {**norms_by_distance, "factor a step": factors}


def factor(norms: Sequence[float]) -> float:
    """Return by what the gradient is multiplied each step back: the slope of its logarithm."""
    logs = [math.log(max(norm, NOTHING)) for norm in norms[NEAR:FAR]]
    return math.exp(float(np.polyfit(range(len(logs)), logs, 1)[0]))


def margins(numbers: Numbers) -> Mapping[str, float]:
    """Hold the factors a step against what the networks are made for."""
    begin = {name: factor(norms) for name, norms in numbers["begin"].items()}
    trained = {name: factor(norms) for name, norms in numbers["trained"].items()}
    return {
        "the small RNN's gradient shrinks by 0.6 a step or faster": 0.6 - begin[SMALL],
        "the large RNN's grows by 1.1 a step or faster": begin[LARGE] - 1.1,
        "the LSTM's shrinks by 0.8 a step or faster where its forget gates begin half shut": 0.8 - begin[SHUT],
        "where they begin open it keeps 0.95 a step": begin[OPEN] - 0.95,
        "the Transformer's is flat within 0.03 a step": 0.03 - abs(begin[TRANSFORMER_NAME] - 1),
        "a short training leaves the small RNN's shrinking by 0.9 a step or faster": 0.9 - trained[SMALL],
        "and the open LSTM's and the Transformer's above 0.85": min(trained[OPEN], trained[TRANSFORMER_NAME]) - 0.85,
    }


def figure(runs: Sequence[Numbers]) -> str:
    """Draw the mean over the seeds of the logarithm, before training; a gradient of exactly zero breaks its curve."""
    series = {}
    for name in runs[0]["begin"]:
        curves = np.array([numbers["begin"][name] for numbers in runs])
        series[name] = [(k, float(np.exp(np.log(at).mean()))) for k, at in enumerate(curves.T) if at.min() > NOTHING]
    title = "Gradient of the last prediction, before training"
    return line_chart(series, title=title, x_label="steps back", y_label="norm of the gradient", log_y=True)
