"""Can the loss of a larger model, or of more text, be told from those of smaller ones?

Kaplan et al. 2020: the loss is a power of the parameters, ``L = (N_c / N)^a``, and one of the text, a straight line
where both axes are logarithmic. It is fitted to a few tiny models, and the line tells the loss of a larger one before
it is trained: nearer than "no change" would be. That of more text is drawn beside its line and claimed nowhere, for by
text the line was off by 1 to 6 % in four seeds. The text is the documentation that Python brings along, by letters.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor

from orrery.data.python_docs import collect
from orrery.models.inputs import Batch
from orrery.models.model import Model
from orrery.objectives.causal import CausalLanguageModel
from orrery.reports.figures import line_chart
from orrery.studies.fitting import build, fit, parameters, warmed_up
from orrery_course.labs._curves import exponent
from orrery_course.labs._lab import Numbers

LETTERS, TEXT, HELD_BACK = 64, 500_000, 40_000
"""The most frequent letters, all others being one more; how much text is read; its end, that is only measured on."""
LENGTH, ROWS, RATE = 64, 16, 0.01
STEPS, WIDTHS, LARGER = 300, (4, 8, 16, 32), 64
WIDTH, TEXTS, MORE = 16, (75, 150, 300), 600
"""A model of one width on a few amounts of text, in steps, and on more."""
QUICK_STEPS, QUICK_WIDTHS, QUICK_LARGER = 100, (4, 16), 64
QUICK_TEXTS, QUICK_MORE = (50, 100), 200
FALL, SLOPE, NEAR, TOLD, BETTER = 0.2, 0.03, 0.04, 0.05, 0.5
"""The least that a loss falls and an exponent is; how near the line is; its part of the error of "no change"."""


@cache
def letters() -> Tensor:
    """Return the text as numbers of its letters."""
    parts, size = [], 0
    for _, text in collect():
        parts.append(text)
        size += len(text)
        if size >= TEXT:
            break
    whole = "\n".join(parts)[:TEXT]
    numbers = {letter: place for place, (letter, _) in enumerate(Counter(whole).most_common(LETTERS))}
    return torch.tensor([numbers.get(letter, LETTERS) for letter in whole])


@dataclass(frozen=True)
class Crops:
    """Draws rows from a text, each from a place at random."""

    text: Tensor
    rows: int = ROWS

    def __call__(self, rng: torch.Generator) -> Batch:
        """Draw a batch."""
        begin_B1 = torch.randint(len(self.text) - LENGTH, (self.rows, 1), generator=rng)
        row_BL = self.text[begin_B1 + torch.arange(LENGTH + 1)]
        return {"ids": row_BL[:, :-1], "targets": row_BL[:, 1:]}


def run(seed: int, quick: bool = False) -> Numbers:
    """Train models of several sizes, and one on several amounts of text; fit both lines and try them on one more."""
    steps, widths, larger = (QUICK_STEPS, QUICK_WIDTHS, QUICK_LARGER) if quick else (STEPS, WIDTHS, LARGER)
    texts, more = (QUICK_TEXTS, QUICK_MORE) if quick else (TEXTS, MORE)
    by_size = dict(trained(width, steps, seed) for width in (*widths, larger))
    by_text = {str(n * ROWS * LENGTH): trained(WIDTH, n, seed)[1] for n in (*texts, more)}
    return {"parameters": extended(by_size), "letters": extended(by_text)}


def trained(width: int, steps: int, seed: int) -> tuple[str, float]:
    """Return the parameters of a Llama, without its tables of words, and its loss in nats on new text."""
    heads = {"num_attention_heads": 2, "num_key_value_heads": 2, "num_hidden_layers": 2}
    sizes = {"hidden_size": width, "intermediate_size": 4 * width, "max_position_embeddings": LENGTH}
    model = build("llama", seed, {**sizes, **heads, "vocab_size": LETTERS + 1})
    text = letters()
    objective = CausalLanguageModel()
    fit(model, objective, Crops(text[:-HELD_BACK]), steps, RATE, seed, schedule=warmed_up(0.1))
    return str(parameters(model.stack.blocks)), loss(model, Crops(text[-HELD_BACK:], rows=256))


@torch.no_grad()
def loss(model: Model, text: Crops) -> float:
    """Return the mean loss on rows that are the same for every model."""
    term = CausalLanguageModel().loss(model, text(torch.Generator().manual_seed(0)))["next_token"]
    return float(term.sum / term.count)


def extended(losses: Mapping[str, float]) -> dict[str, object]:
    """Return the losses, the line through all but the last, and what it says of the last."""
    *known, largest = sorted(losses, key=int)
    fitted = {size: losses[size] for size in known}
    slope = exponent(fitted)
    height = sum(math.log(value) - slope * math.log(int(size)) for size, value in fitted.items()) / len(fitted)

    def told(size: str) -> float:
        return math.exp(height + slope * math.log(int(size)))

    return {
        "loss": dict(losses),
        "exponent": -slope,
        "told": told(largest),
        "error": told(largest) / losses[largest] - 1,
        "error of no change": losses[known[-1]] / losses[largest] - 1,
        "greatest error of the fit": max(abs(told(size) / value - 1) for size, value in fitted.items()),
    }


def margins(numbers: Numbers) -> Mapping[str, float]:
    """Hold that the losses fall, in a line, and that the line goes on."""
    held = {}
    for name, one in numbers.items():
        least, most = (choose(one["loss"], key=int) for choose in (min, max))
        held[f"from the least to the most {name} the loss falls by {FALL}"] = (
            one["loss"][least] - one["loss"][most] - FALL
        )
        held[f"the exponent of {name} is {SLOPE} or more"] = one["exponent"] - SLOPE
        held[f"a line fits the losses by {name} within {NEAR:.0%}"] = NEAR - one["greatest error of the fit"]
    one = numbers["parameters"]
    held[f"it tells the loss of the most parameters, not trained before, within {TOLD:.0%}"] = TOLD - abs(one["error"])
    held[f"it is off by less than {BETTER:.0%} of what no change is"] = BETTER * abs(one["error of no change"]) - abs(
        one["error"]
    )
    return held


def figure(runs: Sequence[Numbers]) -> str:
    """Draw the mean over the seeds, and what the lines had told."""
    series = {}
    for name in runs[0]:
        sizes = sorted(runs[0][name]["loss"], key=int)
        exponents = [numbers[name]["exponent"] for numbers in runs]
        spread = f"{min(exponents):.3f} to {max(exponents):.3f}"
        series[f"{name}, {spread}"] = [
            (int(size), sum(numbers[name]["loss"][size] for numbers in runs) / len(runs)) for size in sizes
        ]
        predicted = sum(numbers[name]["told"] for numbers in runs) / len(runs)
        begin, end = int(sizes[-2]), int(sizes[-1])
        series[f"{name}: told"] = [(begin, series[f"{name}, {spread}"][-2][1]), (end, predicted)]
    title = "Loss by parameters and by letters of text, with the exponents of the lines"
    label = "parameters; letters"
    return line_chart(series, title=title, x_label=label, y_label="nats a letter", log_x=True, log_y=True)
