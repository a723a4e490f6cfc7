"""How do the operations of a layer depend on the length n and the width d: n d squared, or n squared d?

Table 1 of Vaswani et al. 2017, measured: both exponents are fitted to operations that are counted while the layers run,
one size held still while the other grows. Attention without its four projections, as the table has it, and these alone;
and the memory of gated linear attention (GLA), which is linear in n as a recurrence is. At every width attention and a
recurrence cost the same where n = d.
"""

import math
from collections.abc import Mapping, Sequence

from orrery.reports.figures import line_chart
from orrery.reports.stack import stacked
from orrery_course.labs._curves import equal_at, exponent
from orrery_course.labs._lab import Numbers
from orrery_course.labs._operations import attend, operations, project, recur, remember

HELD = 64
SIZES, QUICK_SIZES = (16, 32, 64, 128, 256), (16, 64)
PROJECTIONS = "projections of attention"
LAYERS = {"recurrence": recur, "attention": attend, PROJECTIONS: project, "GLA": remember}
EXPECTED = {"recurrence": (1, 2), "attention": (2, 1), PROJECTIONS: (1, 2), "GLA": (1, 2)}
"""The exponents of n and of d."""
NEAR = 0.02


def run(seed: int, quick: bool = False) -> Numbers:
    """Count the operations of each layer by length and by width, and fit the exponents; there is no chance in it."""
    sizes = QUICK_SIZES if quick else SIZES
    numbers: Numbers = {"by length": {}, "by width": {}, "exponent of n": {}, "exponent of d": {}, "factor": {}}
    for name, layer in LAYERS.items():
        by_length = {str(n): operations(layer, n, HELD) for n in sizes}
        by_width = {str(d): operations(layer, HELD, d) for d in sizes}
        numbers["by length"][name], numbers["by width"][name] = by_length, by_width
        n, d = exponent(by_length), exponent(by_width)
        numbers["exponent of n"][name], numbers["exponent of d"][name] = n, d
        numbers["factor"][name] = math.exp(
            math.log(by_length[str(sizes[0])]) - n * math.log(sizes[0]) - d * math.log(HELD)
        )
    numbers["equal at n / d"] = {str(d): crossing(d) / d for d in sizes}
    return numbers


def crossing(width: int) -> float:
    """Return the length at which attention and a recurrence of one width cost the same."""
    lengths = (width // 2, 2 * width)
    attention, recurrence = (
        {str(n): operations(LAYERS[name], n, width) for n in lengths} for name in ("attention", "recurrence")
    )
    return equal_at(attention, recurrence)


def margins(numbers: Numbers) -> Mapping[str, float]:
    """Hold both exponents of each layer, and where attention and a recurrence cost the same."""
    ratios = numbers["equal at n / d"]
    widths = f"{min(ratios, key=int)} to {max(ratios, key=int)}"
    held = {
        f"the operations of {name} are n^{n} d^{d}, within {NEAR}": NEAR
        - max(abs(numbers["exponent of n"][name] - n), abs(numbers["exponent of d"][name] - d))
        for name, (n, d) in EXPECTED.items()
    }
    equal = NEAR - max(abs(ratio - 1) for ratio in ratios.values())
    return {**held, f"attention and a recurrence cost the same at n = d, for d from {widths}, within {NEAR}": equal}


def figure(runs: Sequence[Numbers]) -> str:
    """Draw the operations against the length, and below against the width."""
    parts = [
        line_chart(
            {name: [(int(size), count / 1e6) for size, count in runs[0][sizes][name].items()] for name in LAYERS},
            title=f"By {label}, where the {other} is {HELD}",
            x_label=label,
            y_label="million operations",
            log_x=True,
            log_y=True,
        )
        for sizes, label, other in (("by length", "length n", "width"), ("by width", "width d", "length"))
    ]
    return stacked(parts, title="Operations of a layer")
