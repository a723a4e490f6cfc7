"""The figures of a comparison, as SVG text by their file's name."""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from orrery.reports.figures import Number, bar_chart, line_chart
from orrery.studies.compare.findings import BESIDE, Comparison, ComparisonEntry
from orrery.studies.compare.probes.table import PROBES
from orrery.studies.compare.summary import by_budget, ranked

Curve: TypeAlias = Sequence[tuple[Number, Number]]
BY_SECONDS, BY_TOKENS, BY_BUDGET, SWEEPS = "loss-by-seconds", "loss-by-tokens", "loss-by-budget", "sweep"
BITS = "bits per byte"


def figures(comparison: Comparison) -> dict[str, str]:
    """Return every figure that there is something to draw in, but for the bars, which stand beside the table."""
    made: dict[str, str] = {}
    if shown(comparison) and any(entry.curve for entry in comparison.entries):
        made |= {BY_SECONDS: by_seconds(comparison), BY_TOKENS: by_tokens(comparison)}
    if len({entry.budget for entry in comparison.entries if entry.budget is not None}) > 1:
        made[BY_BUDGET] = budgets(comparison)
    if any(trial.bits_per_byte is not None for sweep in comparison.sweeps.values() for trial in sweep.trials):
        made[SWEEPS] = sweeps(comparison)
    for name, curves in comparison.probes.items():
        if (svg := PROBES[name].figure(curves)) is not None:
            made[name] = svg
    return made


def bars(comparison: Comparison) -> str:
    """Return the means over the seeds at the greatest budget, as bars with their spread beside the name."""
    values = {}
    for group in ranked(comparison):
        spread = "" if group.spread is None else f" \u00b1 {group.spread:.3f}"
        values[group.name + spread] = group.mean
    return bar_chart(values, title="Bits per byte of the text held back", x_label=f"{BITS}, lower is better")


def budgets(comparison: Comparison) -> str:
    """Return bits per byte over the budget, the mean and the spread of the seeds."""
    curves = by_budget(comparison)
    series = {name: [(amount, group.mean) for amount, group in curve.items()] for name, curve in curves.items()}
    spreads = {
        name: [
            (amount, group.mean - group.spread, group.mean + group.spread)
            for amount, group in curve.items()
            if group.spread is not None
        ]
        for name, curve in curves.items()
    }
    unit = comparison.settings["unit"]
    title = "What a byte costs, by the budget"
    x_label = f"{unit} of training" if unit == "minutes" else unit
    drawn = _in_order(comparison, series)
    return line_chart(drawn, title=title, x_label=x_label, y_label=BITS, log_x=True, spreads=spreads)


def sweeps(comparison: Comparison) -> str:
    """Return the loss of every trial at the first warm-up over its rate."""
    series = {}
    for name, sweep in comparison.sweeps.items():
        first = [trial for trial in sweep.trials if trial.warmup == sweep.trials[0].warmup]
        places = [(trial.rate, trial.loss) for trial in sorted(first, key=lambda trial: trial.rate)]
        if any(trial.bits_per_byte is not None for trial in first):
            series[name] = places
    title, y_label = "The sweep: short trainings at several rates", f"{BITS}, text for choosing"
    return line_chart(_in_order(comparison, series), title=title, x_label="learning rate", y_label=y_label, log_x=True)


def by_seconds(comparison: Comparison) -> str:
    """Return bits per byte over seconds of training, as SVG."""
    return _chart(comparison, "seconds", "seconds of training")


def by_tokens(comparison: Comparison) -> str:
    """Return bits per byte over tokens seen, as SVG."""
    return _chart(comparison, "tokens", "tokens seen")


def shown(comparison: Comparison) -> Sequence[ComparisonEntry]:
    """Return of each model the training whose curve is drawn: that of the greatest budget and the first seed."""
    best: dict[str, ComparisonEntry] = {}
    for entry in comparison.entries:
        before = best.get(entry.name)
        if entry.recipe != BESIDE and (before is None or (entry.budget or 0) > (before.budget or 0)):
            best[entry.name] = entry
    return list(best.values())


def _chart(comparison: Comparison, axis: str, label: str) -> str:
    entries = shown(comparison)
    places = [getattr(point, axis) for entry in entries for point in entry.curve]
    series = {}
    for entry in entries:
        level = [(place, entry.bits_per_byte) for place in (min(places), max(places))]
        series[entry.name] = [(getattr(point, axis), point.bits_per_byte) for point in entry.curve] or level
    title = f"What a byte costs, by {label}"
    return line_chart(_in_order(comparison, series), title=title, x_label=label, y_label=BITS)


def _in_order(comparison: Comparison, series: Mapping[str, Curve]) -> dict[str, Curve]:
    """Return the curves so that a model has one colour in all figures: as they were trained, what is counted last."""
    trained = [entry.name for entry in comparison.entries if entry.steps is not None]
    return {name: series[name] for name in dict.fromkeys((*trained, *series)) if name in series}
