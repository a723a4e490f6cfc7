"""What the findings say: means and spreads over seeds, who leads at which budget, and what budget and recipe gain."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from statistics import fmean, stdev

from orrery.studies.compare.budgets import Amount, Budget
from orrery.studies.compare.findings import BESIDE, Comparison, ComparisonEntry

COLUMNS = (
    "model",
    "budget",
    "parameters",
    "MB",
    "tokens seen",
    "seconds",
    "rate",
    "seeds",
    "bits per byte",
    "perplexity",
)
NATS = "nats a character"


@dataclass(frozen=True)
class TrainingGroup:
    """The trainings of one model with one budget, a seed each."""

    name: str
    budget: Budget | None
    entries: Sequence[ComparisonEntry]

    @property
    def mean(self) -> float:
        """The mean of the bits per byte over the seeds."""
        return fmean(entry.bits_per_byte for entry in self.entries)

    @property
    def spread(self) -> float | None:
        """The standard deviation over the seeds, where there are several."""
        return stdev(entry.bits_per_byte for entry in self.entries) if len(self.entries) > 1 else None

    @property
    def recipe(self) -> str | None:
        """Where the learning rate comes from."""
        return self.entries[0].recipe

    def row(self, nats: float | None) -> tuple[str, ...]:
        """Return the line of the table; ``nats`` is what a bit per byte is in nats a character, if that is shown."""
        first = self.entries[0]
        more = () if nats is None else (self._with_spread(nats),)
        return (
            self.name + (" (hand-set rate)" if self.recipe == BESIDE else ""),
            "counts once" if self.budget is None else self.budget.label,
            f"{first.parameters:,}" + (" n-grams" if first.steps is None else ""),
            f"{first.bytes / 1e6:.1f}",
            f"{fmean(entry.tokens for entry in self.entries):,.0f}",
            f"{fmean(entry.seconds for entry in self.entries):.1f}",
            "" if first.rate is None else f"{first.rate:.2g}",
            "" if first.steps is None else str(len(self.entries)),
            self._with_spread(1.0),
            f"{fmean(entry.perplexity for entry in self.entries):.2f}",
            *more,
        )

    def _with_spread(self, unit: float) -> str:
        spread = self.spread
        return f"{self.mean * unit:.3f}" + ("" if spread is None else f" \u00b1 {spread * unit:.3f}")


def groups(comparison: Comparison) -> list[TrainingGroup]:
    """Return the trainings that differ in their seed alone, together; the least bits per byte first."""
    unit = comparison.settings["unit"]
    together: dict[tuple[str, Amount | None, bool], list[ComparisonEntry]] = {}
    for entry in comparison.entries:
        together.setdefault((entry.name, entry.budget, entry.recipe == BESIDE), []).append(entry)
    made = [
        TrainingGroup(name, None if amount is None else Budget(amount, unit), entries)
        for (name, amount, _), entries in together.items()
    ]
    return sorted(made, key=lambda group: group.mean)


def ranked(comparison: Comparison) -> list[TrainingGroup]:
    """Return the models at the greatest budget that each has, the best first; what was counted is one of them."""
    best: dict[str, TrainingGroup] = {}
    for group in groups(comparison):
        if group.recipe == BESIDE:
            continue
        before = best.get(group.name)
        if before is None or (group.budget and before.budget and group.budget > before.budget):
            best[group.name] = group
    return sorted(best.values(), key=lambda group: group.mean)


def nats_per_bit(comparison: Comparison) -> float | None:
    """Return what a bit per byte is in nats a character, for a tokenizer of characters; else nothing."""
    return comparison.corpus.get("nats_per_bit")


def columns(comparison: Comparison) -> tuple[str, ...]:
    """Return the heads of the table."""
    return COLUMNS if nats_per_bit(comparison) is None else (*COLUMNS, NATS)


def table(comparison: Comparison) -> list[tuple[str, ...]]:
    """Return the lines of the table: by budget, the best first within each."""
    nats = nats_per_bit(comparison)
    order = sorted(groups(comparison), key=lambda group: (group.budget.amount if group.budget else 0.0, group.mean))
    return [group.row(nats) for group in order]


def by_budget(comparison: Comparison) -> dict[str, dict[Amount, TrainingGroup]]:
    """Return the groups of each model at its own rate by the amount of the budget; what was counted is at every."""
    amounts = sorted({entry.budget for entry in comparison.entries if entry.budget is not None})
    made: dict[str, dict[Amount, TrainingGroup]] = {}
    for group in groups(comparison):
        if group.recipe == BESIDE:
            continue
        places = amounts if group.budget is None else [group.budget.amount]
        made.setdefault(group.name, {}).update(dict.fromkeys(places, group))
    return made


def order_sentences(comparison: Comparison) -> list[str]:
    """Return for each two models where their order turns; those that turn come first."""
    curves, unit = by_budget(comparison), comparison.settings["unit"]
    said = [(one, other, turns(curves[one], curves[other])) for one, other in combinations(curves, 2)]
    sentences = [
        (len(crossings), order_sentence(one, other, curves, crossings, unit)) for one, other, crossings in said
    ]
    return [sentence for _, sentence in sorted(sentences, key=lambda pair: -pair[0]) if sentence]


def turns(one: Mapping[Amount, TrainingGroup], other: Mapping[Amount, TrainingGroup]) -> list[float]:
    """Return the budgets at which the order turns: straight lines over the logarithm of the budget cross there."""
    amounts = sorted(one.keys() & other.keys())
    gaps = [one[amount].mean - other[amount].mean for amount in amounts]
    crossings = []
    for (low, high), (before, after) in zip(pairwise(amounts), pairwise(gaps), strict=True):
        if before * after < 0:
            part = before / (before - after)
            crossings.append(math.exp(math.log(low) + part * (math.log(high) - math.log(low))))
    return crossings


def order_sentence(
    one: str, other: str, curves: Mapping[str, Mapping[Amount, TrainingGroup]], crossings: Sequence[float], unit: str
) -> str:
    """Return a sentence on the order of two models; nothing where they share no budget."""
    amounts = sorted(curves[one].keys() & curves[other].keys())
    if not amounts:
        return ""
    least, most = amounts[0], amounts[-1]

    def leader(amount: Amount) -> tuple[str, str]:
        ahead = curves[one][amount].mean < curves[other][amount].mean
        return (one, other) if ahead else (other, one)

    first, second = leader(least)
    where = "" if least == most else f" at every budget from {least:g} to {most:g} {unit}"
    if not crossings:
        return f"{first} is ahead of {second}{where}{doubt(curves, one, other, most)}."
    places = " and ".join(f"{place:.3g}" for place in crossings)
    last = leader(most)[0]
    return (
        f"{first} is ahead of {second} at {least:g} {unit}, and their order turns at about {places}; at {most:g} "
        f"{last} is ahead{doubt(curves, one, other, most)}."
    )


def doubt(curves: Mapping[str, Mapping[Amount, TrainingGroup]], one: str, other: str, amount: Amount) -> str:
    """Say that two models are nearer to each other than their seeds, where that is so."""
    pair = curves[one][amount], curves[other][amount]
    spread = math.hypot(*(group.spread or 0.0 for group in pair))
    near = spread > 0 and abs(pair[0].mean - pair[1].mean) < 2 * spread
    return " (by less than two standard deviations of the seeds)" if near else ""


@dataclass(frozen=True)
class Gain:
    """What one model gains, in bits per byte: by its own rate at the least budget, and by more budget."""

    name: str
    before: float
    recipe: float
    budget: float

    @property
    def after(self) -> float:
        """What it reaches with both."""
        return self.before - self.recipe - self.budget


def gains(comparison: Comparison) -> list[Gain]:
    """Return what each model gains that was trained at the rate set by hand too, with the least budget."""
    own, made = by_budget(comparison), []
    for group in groups(comparison):
        if group.recipe != BESIDE or group.budget is None:
            continue
        amounts = own.get(group.name, {})
        if amounts and group.budget.amount == min(amounts):
            least, most = amounts[min(amounts)].mean, amounts[max(amounts)].mean
            made.append(Gain(group.name, group.mean, group.mean - least, least - most))
    return made


def gain_sentences(comparison: Comparison) -> list[str]:
    """Return for each two models how much of the change in their difference is recipe and how much budget."""
    said = []
    for one, other in combinations(gains(comparison), 2):
        before, after = one.before - other.before, one.after - other.after
        recipe, budget = one.recipe - other.recipe, one.budget - other.budget
        said.append(
            f"{one.name} less {other.name}: {before:+.3f} bits per byte at the hand-set rates and the least budget, "
            f"{after:+.3f} at swept rates and the greatest; the recipe changes the difference by {-recipe:+.3f}, the "
            f"budget by {-budget:+.3f}."
        )
    return said
