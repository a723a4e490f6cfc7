"""How do the operations of a layer depend on the length n and the width d: n d squared, or n squared d?

Table 1 of Vaswani et al. 2017, measured: both exponents are fitted to operations that are counted while the layers run,
one size held still while the other grows. Attention without its four projections, as the table has it, and these alone.
"""

import math
from collections.abc import Mapping, Sequence

from orrery.labs._curves import exponent
from orrery.labs._lab import Numbers
from orrery.labs._operations import attend, operations, project, recur
from orrery.reports.figures import line_chart

HELD = 64
SIZES, QUICK_SIZES = (16, 32, 64, 128, 256), (16, 64)
LAYERS = {"recurrence": recur, "attention": attend, "projections of attention": project}
EXPECTED = {"recurrence": (1, 2), "attention": (2, 1), "projections of attention": (1, 2)}
"""The exponents of n and of d."""
NEAR = 0.02


def run(seed: int, quick: bool = False) -> Numbers:
    """Count the operations of each layer by length and by width, and fit the exponents; there is no chance in it."""
    sizes = QUICK_SIZES if quick else SIZES
    found: Numbers = {"by length": {}, "by width": {}, "exponent of n": {}, "exponent of d": {}, "factor": {}}
    for name, layer in LAYERS.items():
        by_length = {str(n): operations(layer, n, HELD) for n in sizes}
        by_width = {str(d): operations(layer, HELD, d) for d in sizes}
        found["by length"][name], found["by width"][name] = by_length, by_width
        n, d = exponent(by_length), exponent(by_width)
        found["exponent of n"][name], found["exponent of d"][name] = n, d
        found["factor"][name] = math.exp(
            math.log(by_length[str(sizes[0])]) - n * math.log(sizes[0]) - d * math.log(HELD)
        )
    return found


def margins(numbers: Numbers) -> Mapping[str, float]:
    """Hold both exponents of each layer."""
    return {
        f"the operations of {name} are n^{n} d^{d}, within {NEAR}": NEAR
        - max(abs(numbers["exponent of n"][name] - n), abs(numbers["exponent of d"][name] - d))
        for name, (n, d) in EXPECTED.items()
    }


def figure(runs: Sequence[Numbers]) -> str:
    """Draw the operations against the size that grows."""
    series = {
        f"{name}, {'n' if sizes == 'by length' else 'd'} grows": [
            (int(size), count / 1e6) for size, count in runs[0][sizes][name].items()
        ]
        for name in ("recurrence", "attention")
        for sizes in ("by length", "by width")
    }
    title = f"Operations by length n and by width d; the other is {HELD}"
    return line_chart(series, title=title, x_label="n or d", y_label="million operations", log_x=True, log_y=True)
