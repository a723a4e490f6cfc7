"""When does a model learn to repeat, and which heads appear at that moment?

Two layers of attention learn to go on with what comes a second time (Olsson et al. 2022): for a while nothing happens,
then heads that look by induction form within few steps, and the loss on the repeated tokens falls with them. One layer
has no such heads, and its loss does not fall.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import torch

from orrery.objectives.causal import CausalLanguageModel
from orrery.reports.figures import line_chart
from orrery.studies.compare.probes.repeated import Repeated
from orrery.studies.fitting import fit
from orrery_course.labs._curves import mean
from orrery_course.labs._lab import Numbers
from orrery_course.labs.induction import RATE, attention_only, looks

STEPS, EVERY, QUICK_STEPS = 900, 30, 600
ABSENT, FORMED, FALL, LEVEL = 0.2, 0.6, 0.6, 0.4
TOGETHER, SOON = 0.9, 0.15


def run(seed: int, quick: bool = False) -> Numbers:
    """Train one layer and two; return the loss on repeated tokens and the best heads' scores along the training."""
    steps = QUICK_STEPS if quick else STEPS
    numbers: Numbers = {name: history(layers, steps, seed) for name, layers in (("one layer", 1), ("two layers", 2))}
    two = numbers["two layers"]
    loss, score = list(two["loss"].values()), list(two["induction"].values())
    numbers["correlation of score and loss"] = float(np.corrcoef(score, loss)[0, 1])
    numbers["half of the score at step"] = EVERY * half_way(score)
    numbers["half of the loss at step"] = EVERY * half_way(loss)
    numbers["steps"] = steps
    return numbers


def history(layers: int, steps: int, seed: int) -> dict[str, dict[str, float]]:
    """Train, and return what new rows show every few steps: loss in nats, and the best head of each kind."""
    task, model = Repeated(), attention_only(seed, n_layer=layers)
    batch = task(torch.Generator().manual_seed(seed + 1000))
    curves: dict[str, dict[str, float]] = {"loss": {}, "induction": {}, "previous token": {}}

    @torch.no_grad()
    def look(step: int) -> None:
        if step % EVERY and step < steps:
            return
        term = CausalLanguageModel().loss(model, batch)["next_token"]
        previous, induction = looks(model, batch["ids"], task.new)
        curves["loss"][str(step)] = float(term.sum / term.count)
        curves["induction"][str(step)] = max(induction.values())
        curves["previous token"][str(step)] = max(previous.values())

    fit(model.eval(), CausalLanguageModel(), task, steps, RATE, seed, watch=look)
    look(steps)
    return curves


def half_way(values: Sequence[float]) -> float:
    """Return the place, between two values where need be, at which half of the whole change is done for good."""
    middle = (values[0] + values[-1]) / 2
    rising = 1 if values[-1] > values[0] else -1
    last = max(place for place, value in enumerate(values) if rising * (value - middle) < 0)
    before, after = values[last], values[last + 1]
    return last + (middle - before) / (after - before)


def margins(numbers: Numbers) -> Mapping[str, float]:
    """Hold that heads form, that the loss falls with them and when they do, and that one layer has neither."""
    one, two = (
        {name: list(curve.values()) for name, curve in numbers[layers].items()}
        for layers in ("one layer", "two layers")
    )
    apart = abs(numbers["half of the score at step"] - numbers["half of the loss at step"]) / numbers["steps"]
    return {
        f"at the begin no head looks by induction with {ABSENT:.0%}": ABSENT - two["induction"][0],
        f"at the end of two layers one does with {FORMED:.0%}": two["induction"][-1] - FORMED,
        f"their loss on repeated tokens falls by {FALL:.0%}": 1 - FALL - two["loss"][-1] / two["loss"][0],
        f"score and loss go together with a correlation of -{TOGETHER}": -TOGETHER
        - numbers["correlation of score and loss"],
        f"both are half done within {SOON:.0%} of the training": SOON - apart,
        f"the loss of one layer falls by less than {LEVEL:.0%}": one["loss"][-1] / one["loss"][0] - (1 - LEVEL),
    }


def figure(runs: Sequence[Numbers]) -> str:
    """Draw scores and loss along the training, the mean over the seeds; losses as a part of the first."""
    series = {
        "best induction head": mean(runs, "two layers", "induction"),
        "best previous-token head": mean(runs, "two layers", "previous token"),
    }
    for layers in ("two layers", "one layer"):
        losses = mean(runs, layers, "loss")
        series[f"loss of {layers}"] = [(step, loss / losses[0][1]) for step, loss in losses]
    title = "Induction heads form, and the loss on repeated tokens falls"
    return line_chart(series, title=title, x_label="steps", y_label="score; part of the first loss")
