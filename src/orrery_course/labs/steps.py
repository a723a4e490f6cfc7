"""Does a Transformer need fewer steps of training than a recurrent network?

It depends on the distance. Models of one size learn, at one rate, to say the word of some steps ago. Nearby the plain
recurrent network is the quickest; twice as far it has not learned the task where the Transformer, which needs hardly
more steps than before, has long done so.
"""

from collections.abc import Mapping, Sequence

from orrery.objectives.causal import CausalLanguageModel
from orrery.reports.figures import line_chart
from orrery.reports.stack import stacked
from orrery.studies.fitting import build, fit, parameters
from orrery_course.labs._curves import mean
from orrery_course.labs._lab import Numbers
from orrery_course.labs.recall import MODELS, RATE, Delayed, accuracy

NAMES, QUICK_NAMES = ("RNN", "LSTM", "Transformer"), ("RNN", "Transformer")
NEAR, FAR = 4, 8
STEPS, EVERY, TESTED = 500, 10, 64
QUICK_STEPS = 300
KNOWN, SOON = 0.9, 0.6


def run(seed: int, quick: bool = False) -> Numbers:
    """Return each model's accuracy on new words as it learns, and the steps after which it knows them."""
    names, steps = (QUICK_NAMES, QUICK_STEPS) if quick else (NAMES, STEPS)
    curves = {str(k): {name: learned(name, k, steps, seed) for name in names} for k in (NEAR, FAR)}
    return {
        "accuracy": curves,
        "steps needed": {k: {name: needed(curve) for name, curve in one.items()} for k, one in curves.items()},
        "parameters": {name: parameters(build(MODELS[name][0], seed, MODELS[name][1])) for name in names},
        "steps": steps,
    }


def learned(name: str, distance: int, steps: int, seed: int) -> dict[str, float]:
    """Train, and return the accuracy by the steps taken."""
    family, config = MODELS[name]
    model, test, accuracies = build(family, seed, config), Delayed(distance, rows=TESTED), dict[str, float]()

    def look(step: int) -> None:
        if step % EVERY == 0:
            accuracies[str(step)] = accuracy(model, test, seed + 1000)

    fit(model.eval(), CausalLanguageModel(), Delayed(distance), steps, RATE, seed, watch=look)
    look(steps)
    return accuracies


def needed(curve: Mapping[str, float]) -> int:
    """Return the steps after which the accuracy is `KNOWN` for the first time, or all where it never is."""
    return next((int(step) for step, part in curve.items() if part >= KNOWN), max(map(int, curve)))


def margins(numbers: Numbers) -> Mapping[str, float]:
    """Hold who is quicker nearby, and who learns the far task at all."""
    near, far = (numbers["steps needed"][str(k)] for k in (NEAR, FAR))
    steps = numbers["steps"]
    best = max(max(curve.values()) for name, curve in numbers["accuracy"][str(FAR)].items() if name != "Transformer")
    return {
        f"at distance {NEAR} the RNN needs fewer steps than the Transformer": (near["Transformer"] - near["RNN"])
        / steps,
        f"at distance {FAR} the Transformer knows {KNOWN:.0%} before {SOON:.0%} of {steps} steps": SOON
        - far["Transformer"] / steps,
        f"no recurrent network knows {KNOWN:.0%} there after all": KNOWN - best,
        "at twice the distance the Transformer needs less than twice the steps": 2
        - far["Transformer"] / near["Transformer"],
    }


def figure(runs: Sequence[Numbers]) -> str:
    """Draw the accuracy by the steps taken, the mean over the seeds, nearby and below it far away."""
    parts = [
        line_chart(
            {name: mean(runs, "accuracy", distance, name) for name in curves},
            title=f"The word of {distance} steps ago",
            x_label="steps of training",
            y_label="part recalled",
        )
        for distance, curves in runs[0]["accuracy"].items()
    ]
    return stacked(parts, title="Recall as it is learned, at equal parameters")
