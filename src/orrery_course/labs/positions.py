"""What must a code of positions do, and which code does it?

The course asks for a normalised range, a unique identifier for unlimited lengths, and relative positions as a linear
map. Each is computed for each code; so is what a model that has it does with words in another order, with a text that
begins later, and with texts longer than any it was trained on.
"""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from orrery.errors import UsageError
from orrery.nn.masks import Causal, Full
from orrery.objectives.causal import CausalLanguageModel
from orrery.reports.figures import heat_map, line_chart
from orrery.reports.stack import stacked
from orrery.studies.fitting import build_spec, fit
from orrery_course.labs._codes import CODES, LIMIT, REACH, model_spec, vectors
from orrery_course.labs._curves import mean
from orrery_course.labs._lab import Numbers
from orrery_course.labs.recall import Delayed, accuracy

VOCABULARY, LENGTH, ROWS, RATE, LAYERS = 8, 16, 32, 0.01, 2
TRAINED = ("none", "normalised index", "sinusoidal", "learned", "rotary", "ALiBi", "T5")
LENGTHS, STEPS = (16, 24, 32, 48, 64), 400
QUICK_TRAINED, QUICK_LENGTHS, QUICK_STEPS = ("learned", "ALiBi"), (16, 64), 200
SHIFT = 5
EXACT, MOVED = 1e-9, 0.01
"""What counts as no difference in float64, and as one, relative to the greatest number."""
KNOWN, LOST = 0.9, 0.6
MARKS = ("normalised range", "unique", "unlimited length", "relative as a linear map")
ALL_MARKS = ("sinusoidal", "rotary")
BY_DISTANCE, BY_PLACE = ("rotary", "ALiBi", "T5"), ("one-hot", "index", "sinusoidal", "learned")


def run(seed: int, quick: bool = False) -> Numbers:
    """Compute the marks of each code, and measure what models do that have it."""
    coded = [name for name in CODES if name != "none"]
    trained, lengths, steps = (QUICK_TRAINED, QUICK_LENGTHS, QUICK_STEPS) if quick else (TRAINED, LENGTHS, STEPS)
    return {
        "marks": {name: marks(name) for name in coded},
        "moved by another order": {name: moved_by_order(name, seed) for name in CODES},
        "moved by a later begin": {name: moved_by_begin(name, seed) for name in CODES},
        "accuracy": {name: extrapolation(name, lengths, steps, seed) for name in trained},
    }


def marks(name: str) -> dict[str, float]:
    """Return the numbers behind the three marks of the course, and whether each of `MARKS` is there, as 0 or 1."""
    reach = reach_of(name)
    code_LE = vectors(name, reach)
    apart_LL = torch.cdist(code_LE, code_LE).fill_diagonal_(torch.inf)
    begin, again = vectors(name, LIMIT // 2), code_LE[: LIMIT // 2]
    numbers = {
        "greatest number": float(code_LE.abs().max()),
        "least distance of two places": float(apart_LL.min()),
        "places": float(reach),
        "change of a place as the text grows": float((begin - again).abs().max()),
        "error of the best linear map": map_error(code_LE),
    }
    held = (
        numbers["greatest number"] <= 1 + EXACT,
        numbers["least distance of two places"] > EXACT,
        reach == REACH and numbers["change of a place as the text grows"] < EXACT,
        numbers["error of the best linear map"] < 1e-6,
    )
    return {**numbers, **{mark: float(kept) for mark, kept in zip(MARKS, held, strict=True)}}


def reach_of(name: str) -> int:
    """Return how many places a code has, at most `REACH`."""
    try:
        vectors(name, REACH)
    except UsageError:
        return LIMIT
    return REACH


def map_error(code_LE: Tensor) -> float:
    """Return how far ``P(k + SHIFT)`` is from ``M P(k)`` on odd k, for the M that is best on even k, relative."""
    now, then = code_LE[:-SHIFT], code_LE[SHIFT:]
    best = torch.linalg.lstsq(now[0::2], then[0::2], driver="gelsd").solution
    return float((now[1::2] @ best - then[1::2]).abs().max() / code_LE.abs().max())


@torch.no_grad()
def moved_by_order(name: str, seed: int) -> float:
    """Return how far the outputs are from following their words into another order; every word sees all others."""
    model = build_spec(model_spec(name, Full(), VOCABULARY, LAYERS), seed).double().eval()
    rng = torch.Generator().manual_seed(seed)
    ids_BL, order_L = torch.randint(VOCABULARY, (ROWS, LENGTH), generator=rng), torch.randperm(LENGTH, generator=rng)
    plain_BLD = model.hidden(ids_BL)
    return float((model.hidden(ids_BL[:, order_L]) - plain_BLD[:, order_L]).abs().max() / plain_BLD.abs().max())


@torch.no_grad()
def moved_by_begin(name: str, seed: int) -> float:
    """Return how far the outputs of a text change where it begins at a later place."""
    model = build_spec(model_spec(name, Causal(), VOCABULARY, LAYERS), seed).double().eval()
    ids_BL = torch.randint(VOCABULARY, (ROWS, LENGTH), generator=torch.Generator().manual_seed(seed))
    plain_BLD = model.hidden(ids_BL)
    later_BLD = model.hidden(ids_BL, positions=torch.arange(LENGTH).expand(ROWS, -1) + SHIFT)
    return float((later_BLD - plain_BLD).abs().max() / plain_BLD.abs().max())


def extrapolation(name: str, lengths: Sequence[int], steps: int, seed: int) -> dict[str, float]:
    """Train to say the word before, in texts of `LENGTH`, and return the accuracy in longer ones."""
    model = build_spec(model_spec(name, Causal(), VOCABULARY, LAYERS), seed)
    fit(model, CausalLanguageModel(), Delayed(1, VOCABULARY, LENGTH, ROWS), steps, RATE, seed)
    tests = {length: Delayed(1, VOCABULARY, length, 4 * ROWS) for length in lengths}
    return {str(length): accuracy(model, test, seed + 1000) for length, test in tests.items()}


def margins(numbers: Numbers) -> Mapping[str, float]:
    """Hold the tests of order and of a later begin, the marks, and who reads longer texts."""
    order, begin, accuracies = (
        numbers[name] for name in ("moved by another order", "moved by a later begin", "accuracy")
    )
    complete = [name for name, one in numbers["marks"].items() if all(one[mark] for mark in MARKS)]
    shortest, longest = (str(choose(map(int, accuracies["learned"]))) for choose in (min, max))
    return {
        "without a code the outputs follow their words into any order": EXACT - order["none"],
        "with any code they do not": min(value for name, value in order.items() if name != "none") - MOVED,
        f"all marks have {' and '.join(ALL_MARKS)} alone": 0.0 if tuple(complete) == ALL_MARKS else -1.0,
        f"a later begin changes nothing for {', '.join(BY_DISTANCE)}": EXACT - max(begin[name] for name in BY_DISTANCE),
        f"it does for {', '.join(BY_PLACE)}": min(begin[name] for name in BY_PLACE) - MOVED,
        f"at {shortest} words, as trained, {KNOWN:.0%} is right with learned places": accuracies["learned"][shortest]
        - KNOWN,
        f"at {longest} less than {LOST:.0%}": LOST - accuracies["learned"][longest],
        f"with ALiBi at {longest} still {KNOWN:.0%}": accuracies["ALiBi"][longest] - KNOWN,
    }


def figure(runs: Sequence[Numbers]) -> str:
    """Draw which code has which mark, and the accuracy by length, the mean over the seeds."""
    marks = runs[0]["marks"]
    checked = heat_map(
        [[one[mark] for mark in MARKS] for one in marks.values()],
        rows=[name.removesuffix(" index") for name in marks],
        columns=("at most 1", "unique", "unlimited", "linear map"),
        title="Marks that each code has",
        highest=1.0,
    )
    series = {name: mean(runs, "accuracy", name) for name in runs[0]["accuracy"]}
    title = f"The word before, in texts longer than the {LENGTH} words of the training"
    curves = line_chart(series, title=title, x_label="words", y_label="part that is right", log_x=True)
    return stacked([checked, curves], title="Codes of positions")
