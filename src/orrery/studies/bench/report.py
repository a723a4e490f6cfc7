"""Measurements as a table and as a page."""

import statistics
from collections.abc import Sequence

from orrery.reports.figures import bar_chart
from orrery.reports.page import document, figure, head, rows_table, section, visible
from orrery.studies.bench.generating import GenerationSpeed
from orrery.studies.bench.rounds import Series

COLUMNS = ("case", "who", "first token", "prefill", "decode", "whole", "of the bandwidth", "orrery is faster by")
UNITS = "first token: seconds; prefill, decode and whole: tokens a second, medians of the rounds"


def rows(found: GenerationSpeed) -> list[list[str]]:
    """Return the table's rows."""
    return [_row(found, number, one) for number, several in enumerate(found.series) for one in several]


def _row(found: GenerationSpeed, number: int, one: Series) -> list[str]:
    ours = found.series[number][0]
    measure = "whole" if "whole" in one.rates else "first"
    ratios = ours.faster_than(one, measure)
    share = found.share_of_bandwidth(number, one) if one is ours else None
    beside = "" if one is ours else f"{statistics.median(ratios):.2f}x [{min(ratios):.2f} {max(ratios):.2f}]"
    rates = [f"{one.median(name):,.1f}" if name in one.rates else "" for name in ("prefill", "decode", "whole")]
    return [one.case.name, one.subject, f"{one.median('first'):.3f}", *rates, f"{share:.0%}" if share else "", beside]


def notes(found: GenerationSpeed) -> list[str]:
    """Return what a reader must know: units, the machine, the memory, whether the tokens are equal."""
    read, best = found.read
    lines = [
        UNITS,
        f"orrery writes by {found.steps}",
        *found.machine.notes(),
        f"memory in the same minutes: {read:.1f} GB/s, best {best:.1f}; the share is of the best, for weights, keys "
        "and values that a step reads",
    ]
    for name, (equal, of) in found.equal.items():
        lines.append(f"{name}: {equal} of {of} greedy tokens in float32 are ours")
    return lines


def page(found: GenerationSpeed) -> str:
    """Return one HTML file with the tables and a figure for each case."""
    figures = [figure(chart(several), several[0].case.name) for several in found.series]
    lead = head(f"Speed of {found.model}", UNITS)
    listed = "\n".join(f"<p>{visible(note)}</p>" for note in notes(found))
    body = (lead, section("Rates", "\n".join(figures)), section("Numbers", rows_table(COLUMNS, rows(found)) + listed))
    return document(f"Orrery: speed of {found.model}", "\n".join(body))


def chart(several: Sequence[Series]) -> str:
    """Return the tokens a second of one case as bars."""
    measure = "whole" if "whole" in several[0].rates else "prefill"
    values = {one.subject: one.median(measure) for one in several}
    return bar_chart(values, title=f"{several[0].case.name}", x_label="tokens a second, more is better")
