"""Plans as rows to print: one plan in its parts, the best plan by devices, published runs beside predictions."""

from collections.abc import Sequence
from dataclasses import dataclass, fields

from orrery.errors import UsageError
from orrery.planning.layouts.communication import traffic
from orrery.planning.layouts.layout_plan import LayoutPlan
from orrery.planning.layouts.published import PredictedRun
from orrery.planning.layouts.search import LayoutSearch, best

DEVICES = (1, 8, 64, 512, 1_024, 4_096, 16_384, 100_000)
"""What the table shows unless told otherwise."""
Row = tuple[str, ...]


@dataclass(frozen=True)
class ScaledPlan:
    """The best plan for a number of devices, or why there is none.

    Attributes:
        devices: that there are.
        plan: the best; nothing where none fits.
        why: what is wrong and what would fit, where none does.
    """

    devices: int
    plan: LayoutPlan | None
    why: str = ""


def scaled(search: LayoutSearch, devices: Sequence[int]) -> list[ScaledPlan]:
    """Return the best plan for each number of devices, all else as the search says."""
    plans = []
    for count in devices:
        try:
            search_of_count = LayoutSearch(
                search.work, search.training, search.machine, count, search.limit, search.only
            )
            plans.append(ScaledPlan(count, best(search_of_count)))
        except UsageError as error:
            plans.append(ScaledPlan(count, None, f"{error.message}; {error.hint}"))
    return plans


SCALED_COLUMNS = (
    "devices",
    "used",
    "layout",
    "GB a device",
    "step, seconds",
    "tokens a second",
    "MFU",
    "days",
    "dollars",
)


def scaled_rows(plans: Sequence[ScaledPlan], tokens: int | float) -> list[Row]:
    """Return a row for each number of devices; ``tokens`` are those of the whole training."""
    return [_scaled_row(one, tokens) for one in plans]


def _scaled_row(one: ScaledPlan, tokens: int | float) -> Row:
    if one.plan is None:
        return (f"{one.devices:,}", "", "none fits", *("" for _ in SCALED_COLUMNS[3:]))
    plan = one.plan
    return (
        f"{one.devices:,}",
        f"{plan.layout.devices:,}",
        plan.layout.text(),
        f"{plan.memory.total / 1e9:,.1f}",
        f"{plan.time.total:,.3f}",
        f"{plan.tokens_per_second:,.0f}",
        f"{100 * plan.mfu():.1f} %",
        f"{plan.days(tokens):,.1f}",
        dollars(plan.cost(tokens)),
    )


def dollars(cost: int | float | None) -> str:
    """Return an amount in whole dollars; a dash where the machine has no price."""
    return "-" if cost is None else f"{cost:,.0f}"


def memory_rows(plan: LayoutPlan, limit: int | float) -> list[Row]:
    """Return the bytes of the fullest device by what they hold, with their share of the limit."""
    parts = [(f.name, getattr(plan.memory, f.name)) for f in fields(plan.memory)]
    shown = [*parts, ("all", plan.memory.total), ("there are", limit)]
    return [(name, f"{size:,.0f}", f"{100 * size / limit:.1f} %") for name, size in shown if size]


def time_rows(plan: LayoutPlan) -> list[Row]:
    """Return the seconds of a step by what they go to, with their share."""
    parts = [(f.name, getattr(plan.time, f.name)) for f in fields(plan.time)]
    total = plan.time.total
    return [(name, f"{value:.4f}", f"{100 * value / total:.1f} %") for name, value in [*parts, ("all", total)] if value]


def traffic_rows(plan: LayoutPlan) -> list[Row]:
    """Return what each kind of parallelism sends in a step: ranks, bytes of each device, network, formula, paper."""
    return [
        (
            one.kind,
            str(one.ranks),
            f"{one.bytes:,.0f}",
            "inside a node" if one.inside else "between nodes",
            one.formula,
            one.paper,
        )
        for one in traffic(plan.work, plan.training, plan.layout, plan.machine)
    ]


PUBLISHED_COLUMNS = ("run", "devices", "measure", "published", "predicted", "difference", "layout", "verdict")


def published_rows(runs: Sequence[PredictedRun]) -> list[Row]:
    """Return a row for each published run: its utilisation beside the prediction, and what explains a difference."""
    return [
        (
            one.run.name,
            f"{one.run.devices:,} {one.run.machine}",
            "HFU" if one.run.recomputed else "MFU",
            f"{100 * one.run.published:.1f} %",
            f"{100 * one.predicted:.1f} %",
            f"{100 * (one.ratio - 1):+.1f} %",
            one.plan.layout.text(),
            "within 15 %" if one.within else one.run.reason,
        )
        for one in runs
    ]
