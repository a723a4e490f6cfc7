"""What a comparison will cost, before it begins: trainings, trials and their minutes by model."""

from orrery.studies.compare.models import COUNTS
from orrery.studies.compare.plan import ComparisonPlan, jobs

COLUMNS = ("model", "trials", "trainings", "in all")


def costs(plan: ComparisonPlan) -> tuple[list[tuple[str, ...]], str]:
    """Return a line for each model, and what all of them take together in words.

    A budget in steps has no minutes: they depend on the machine.
    """
    unit = plan.budgets[0].unit
    names = [name for name in plan.models if name != COUNTS] + [recipe.name for recipe in plan.recipes]
    work = jobs(plan, dict.fromkeys(names, plan.base))
    rows: list[tuple[str, ...]] = []
    total = 0.0
    for name in names:
        own = [job for job in work if job.name == name]
        trials = plan.sweep.trials if plan.sweep is not None and plan.rate_from(name) == "swept" else 0
        trial = max(plan.budgets).part(plan.sweep.share).amount if plan.sweep is not None else 0.0
        amount = trials * trial + sum(job.budget.amount for job in own if job.budget is not None)
        total += amount
        rows.append((name, f"{trials} x {trial:g}" if trials else "none", trainings(plan, len(own)), f"{amount:g}"))
    return rows, in_words(total, unit, len(names), plan)


def trainings(plan: ComparisonPlan, count: int) -> str:
    """Return the number of trainings and what they are, in words."""
    parts = f"{len(plan.budgets)} budgets x {len(plan.seeds)} seeds" if count > 1 else "1"
    return f"{count}: {parts}{', and hand-set rates' if plan.hand_set else ''}" if count > 1 else parts


def in_words(total: float, unit: str, names: int, plan: ComparisonPlan) -> str:
    """Return what everything takes together."""
    models = "1 model" if names == 1 else f"{names} models in all"
    probes = f"; then {len(plan.probing.names)} probes of each" if plan.probing.names else ""
    if unit == "steps":
        return f"{total:,.0f} steps of training for {models}{probes}"
    return f"{minutes_in_words(total)} of training for {models}, evaluations not counted{probes}"


def minutes_in_words(minutes: float) -> str:
    """Return an amount of minutes, from ninety on in hours too."""
    hours = f" ({minutes / 60:,.1f} hours)" if minutes >= 90 else ""
    return f"{minutes:,.1f} minutes{hours}"
