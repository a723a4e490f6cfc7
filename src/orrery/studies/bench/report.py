"""Measurements as a table and as a page."""

import statistics
from collections.abc import Sequence

from orrery.reports.figures import bar_chart
from orrery.reports.making import Making
from orrery.reports.page import Heading, document, figure, rows_table, section, visible
from orrery.studies.bench.generating import GenerationSpeed
from orrery.studies.bench.rounds import Series

COLUMNS = ("case", "who", "first token", "prefill", "decode", "whole", "of the bandwidth", "orrery is faster by")
UNITS = "first token: seconds; prefill, decode and whole: tokens a second, medians of the rounds"


def rows(speed: GenerationSpeed) -> list[list[str]]:
    """Return the table's rows."""
    return [_row(speed, number, one) for number, several in enumerate(speed.series) for one in several]


def _row(speed: GenerationSpeed, number: int, one: Series) -> list[str]:
    ours = speed.series[number][0]
    measure = "whole" if "whole" in one.rates else "first"
    ratios = ours.faster_than(one, measure)
    share = speed.share_of_bandwidth(number, one) if one is ours else None
    beside = "" if one is ours else f"{statistics.median(ratios):.2f}x [{min(ratios):.2f} {max(ratios):.2f}]"
    rates = [f"{one.median(name):,.1f}" if name in one.rates else "" for name in ("prefill", "decode", "whole")]
    return [one.case.name, one.subject, f"{one.median('first'):.3f}", *rates, f"{share:.0%}" if share else "", beside]


def notes(speed: GenerationSpeed) -> list[str]:
    """Return what a reader must know: units, the machine, the memory, whether the tokens are equal."""
    read, best = speed.read
    lines = [
        UNITS,
        f"orrery writes by {speed.steps}",
        *speed.machine.notes(),
        f"memory in the same minutes: {read:.1f} GB/s, best {best:.1f}; the share is of the best, for weights, keys "
        "and values that a step reads",
    ]
    for name, (equal, of) in speed.equal.items():
        lines.append(f"{name}: {equal} of {of} greedy tokens in float32 are ours")
    return lines


def page(speed: GenerationSpeed, making: Making) -> str:
    """Return one HTML file with the tables and a figure for each case."""
    figures = [figure(chart(several)) for several in speed.series]
    about = (speed.machine.processor, f"orrery writes by {speed.steps}")
    heading = Heading("speed", f"Speed of {speed.model}", about, told(speed))
    listed = "\n".join(f"<p>{visible(note)}</p>" for note in notes(speed))
    parts = (section("Rates", "\n".join(figures)), section("Numbers", rows_table(COLUMNS, rows(speed)) + listed))
    return document(heading, parts, making)


def told(speed: GenerationSpeed) -> str:
    """Return the first case in a sentence: what we reach, and how many times that of each peer."""
    ours, *others = speed.series[0]
    measure = "whole" if "whole" in ours.rates else "prefill"
    times = "".join(f", {ours.median(measure) / one.median(measure):.2f} times {one.subject}" for one in others)
    return f"{ours.case.name}: {ours.median(measure):,.1f} tokens a second{times}."


def chart(several: Sequence[Series]) -> str:
    """Return the tokens a second of one case as bars."""
    measure = "whole" if "whole" in several[0].rates else "prefill"
    values = {one.subject: one.median(measure) for one in several}
    return bar_chart(values, title=f"{several[0].case.name}", x_label="tokens a second, more is better")
