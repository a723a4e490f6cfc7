"""The golden output of BiMamba: Mamba's equations, one token and one channel at a time, from both ends of a text."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from tests.goldens.matrix_memories import EPS, HIDDEN, WIDTH, language_model, matrix
from tests.goldens.weights import VOCABULARY, Formula, Weights

STATE, RANK, PLACES = 4, 2, 3


def mamba(w: Weights, name: str, xs: list[Tensor]) -> list[Tensor]:
    """Gu and Dao 2023, algorithm 2: what is written and how long it stays depend on the token."""
    inputs = [matrix(w, f"{name}.x", x, WIDTH) for x in xs]
    short, bias = (
        w.take(f"{name}.convolution.weight", WIDTH, 1, PLACES)[:, 0],
        w.take(f"{name}.convolution.bias", WIDTH),
    )
    decay, skip = -w.take(f"{name}.a_log", WIDTH, STATE).exp(), w.take(f"{name}.skip", WIDTH)
    state, said = torch.zeros(WIDTH, STATE, dtype=torch.float64), []
    for t, x in enumerate(xs):
        u = F.silu(bias + sum(short[:, PLACES - 1 - ago] * inputs[t - ago] for ago in range(PLACES) if t >= ago))
        step = F.softplus(w.linear(f"{name}.step_up", matrix(w, f"{name}.step_down", u, RANK), WIDTH))
        b, c = (matrix(w, f"{name}.{part}", u, STATE) for part in ("write", "read"))
        state = torch.exp(step[:, None] * decay) * state + (step * u)[:, None] * b
        gate = F.silu(matrix(w, f"{name}.gate", x, WIDTH))
        said.append(matrix(w, f"{name}.out", (state @ c + skip * u) * gate, WIDTH))
    return said


def both_ways(w: Weights, name: str, xs: list[Tensor]) -> list[Tensor]:
    """Return what the text says read from its beginning, and read from its end."""
    onward = mamba(w, f"{name}.left_to_right", xs)
    backward = mamba(w, f"{name}.right_to_left.mixer", xs[::-1])[::-1]
    return [a + b for a, b in zip(onward, backward, strict=True)]


CONFIG = {
    "vocab_size": VOCABULARY,
    "hidden_size": WIDTH,
    "intermediate_size": HIDDEN,
    "num_hidden_layers": 2,
    "state_size": STATE,
    "time_step_rank": RANK,
    "conv_kernel": PLACES,
    "rms_norm_eps": EPS,
    "max_position_embeddings": 48,
}
FORMULAS: dict[str, list[tuple[str, dict[str, Any], Formula]]] = {
    "bimamba": [("both directions", CONFIG, language_model([("mixer", both_ways)] * 2, "heads.masked"))]
}
ARCHITECTURES = {"bimamba": "BiMambaForMaskedLM"}
