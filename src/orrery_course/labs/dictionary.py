"""Is attention a dictionary that is looked up softly?

``softmax(q k / T) v`` is the mean of the values at a high temperature T, and at a low one exactly the value of the key
that is most like the query: a look-up. In between it has a gradient, by which keys and queries can be learned; the hard
look-up has none.
"""

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise

import torch
from torch import Tensor

from orrery.nn.attention.kernels import eager
from orrery.nn.attention.operands import KeysValues, Operands
from orrery.nn.masks import PLAIN_FULL
from orrery.reports.figures import line_chart
from orrery_course.labs._curves import mean
from orrery_course.labs._lab import Numbers

ENTRIES, WIDTH, QUERIES, NOISE = 16, 32, 64, 0.1
TEMPERATURES = tuple(10.0 ** (power / 2) for power in range(4, -7, -1))
"""From 100 to 0.001; the products of unlike keys are about a third of those of like ones."""
SOFT, HARD, EXACT = 0.02, 1e-9, 0.0


def run(seed: int, quick: bool = False) -> Numbers:
    """Look every query up at each temperature; return its greatest distance from entry and mean.

    Distances are relative to the greatest number among the values.
    """
    rng = torch.Generator().manual_seed(seed)
    k_SD, v_SD = (torch.randn(ENTRIES, WIDTH, generator=rng, dtype=torch.float64) for _ in range(2))
    k_SD = k_SD / k_SD.norm(dim=-1, keepdim=True)
    asked_L = torch.randint(ENTRIES, (QUERIES,), generator=rng)
    noise_LD = torch.randn(QUERIES, WIDTH, generator=rng, dtype=torch.float64) * NOISE / math.sqrt(WIDTH)
    q_LD = k_SD[asked_L] + noise_LD
    numbers: Numbers = {name: {} for name in ("from the entry", "from the mean", "weight of the entry", "gradient")}
    for temperature in TEMPERATURES:
        queries_LD = q_LD.clone().requires_grad_()
        answer_LD = look_up(queries_LD, k_SD, v_SD, temperature)
        (answer_LD**2).sum().backward()
        assert queries_LD.grad is not None
        pattern_LS = torch.softmax(q_LD @ k_SD.T / temperature, -1)
        measured = {
            "from the entry": float((answer_LD - v_SD[asked_L]).detach().abs().max() / v_SD.abs().max()),
            "from the mean": float((answer_LD - v_SD.mean(0)).detach().abs().max() / v_SD.abs().max()),
            "weight of the entry": float(pattern_LS.gather(1, asked_L[:, None]).min()),
            "gradient": float(queries_LD.grad.abs().max()),
        }
        for name, value in measured.items():
            numbers[name][f"{temperature:.4g}"] = value
    return numbers


def look_up(q_LD: Tensor, k_SD: Tensor, v_SD: Tensor, temperature: float) -> Tensor:
    """Return what attention makes of the entries for each query: the kernel's own definition, in float64."""
    operands = Operands(mask=PLAIN_FULL, scale=1 / temperature)
    return eager(q_LD[None, None], KeysValues(k_SD[None, None], v_SD[None, None]), operands)[0, 0]


def margins(numbers: Numbers) -> Mapping[str, float]:
    """Hold both ends, the way between them, and what the hard end costs."""
    entry, flat, slope = (list(numbers[name].values()) for name in ("from the entry", "from the mean", "gradient"))
    falls = [warmer - colder for warmer, colder in pairwise(entry) if warmer > EXACT]
    return {
        f"at temperature {TEMPERATURES[0]:g} it gives the mean of all values, within {SOFT}": SOFT - flat[0],
        f"at {TEMPERATURES[-1]:g} the value of the entry, exactly": EXACT - entry[-1],
        "the colder, the nearer to the entry, until it is there": min(falls),
        "in between, a query has a gradient of 0.1 or more": max(slope) - 0.1,
        f"at {TEMPERATURES[-1]:g} it has none to learn from, below {HARD:g}": HARD - slope[-1],
    }


def figure(runs: Sequence[Numbers]) -> str:
    """Draw the distance of what is found from the entry and from the mean, over the seeds."""
    series = {
        name: mean(runs, key)
        for name, key in {
            "distance from the entry": "from the entry",
            "distance from the mean": "from the mean",
            "least weight of the entry": "weight of the entry",
        }.items()
    }
    title = "A soft dictionary becomes a hard one as the temperature falls"
    return line_chart(series, title=title, x_label="temperature", y_label="relative distance; weight", log_x=True)
