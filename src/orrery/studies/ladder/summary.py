"""A ladder in words and rows: what its law tells of the largest size, by how much it missed, and every size."""

import statistics
from collections.abc import Mapping, Sequence

from orrery.studies.compare.estimate import minutes_in_words
from orrery.studies.ladder.findings import LadderFindings, LadderRun
from orrery.studies.ladder.forecast import AXES, LEVEL, Forecast

SIZES = ("parameters", "tokens", "operations", "rate", "planned", "measured", "nats a token")
LAWS = ("loss by", "irreducible", "exponent", "predicted", "measured", "miss")


def foretold(ladder: LadderFindings, predictions: Mapping[str, Forecast]) -> str:
    """Return what is said before the largest size is trained."""
    one = predictions[AXES[0]]
    low, high = one.interval(one.place)
    return (
        f"{ladder.largest['parameters']:,} parameters: the law of {len(ladder.fitted)} smaller trainings predicts "
        f"{one.told:.4f} nats a token ({LEVEL:.0%} interval {low:.4f} to {high:.4f})"
    )


def outcome(ladder: LadderFindings, predictions: Mapping[str, Forecast]) -> str:
    """Return the prediction beside what was measured, and what is off by how much; before that the prediction alone."""
    one = predictions[AXES[0]]
    if one.measured is None:
        return foretold(ladder, predictions)
    assert one.miss is not None  # it is known with what was measured
    low, high = one.interval(one.place)
    inside = "inside" if low <= one.measured <= high else "outside"
    before = ladder.sizes[-2]["parameters"]
    same = mean(ladder.of(before)) / one.measured - 1
    return (
        f"{ladder.largest['parameters']:,} parameters: the law of {len(ladder.fitted)} smaller trainings predicted "
        f"{one.told:.4f} nats a token ({LEVEL:.0%} interval {low:.4f} to {high:.4f}), the training reached "
        f"{one.measured:.4f}: a miss of {one.miss:+.2%}, {inside} the interval. The loss of {before:,} parameters, "
        f"taken as the prediction, would miss by {same:+.2%}"
    )


def size_rows(ladder: LadderFindings) -> list[tuple[str, ...]]:
    """Return a row for each size, as `SIZES` names its cells."""
    rows: list[tuple[str, ...]] = []
    for size in ladder.sizes:
        runs = ladder.of(size["parameters"])
        rows.append(
            (
                f"{size['parameters']:,}",
                f"{size['tokens']:,}",
                f"{size['operations']:.3g}",
                f"{size['rate']:.3g}",
                f"{size['planned_seconds'] / 60:.1f} min",
                f"{sum(run.seconds for run in runs) / len(runs) / 60:.1f} min" if runs else "",
                losses(runs),
            )
        )
    return rows


def planned_rows(ladder: LadderFindings) -> list[tuple[str, ...]]:
    """Return a row for each size before any is trained: without what is measured, with its number of trainings."""
    trainings = len(ladder.settings["ladder"]["seeds"])
    rows = [list(row[: SIZES.index("measured")]) for row in size_rows(ladder)]
    return [
        (*row[:-1], str(1 if number == len(rows) else trainings), row[-1]) for number, row in enumerate(rows, start=1)
    ]


def planned_minutes(ladder: LadderFindings) -> float:
    """Return the minutes that all trainings take together."""
    trainings = len(ladder.settings["ladder"]["seeds"])
    seconds = [size["planned_seconds"] for size in ladder.sizes]
    return (trainings * sum(seconds[:-1]) + seconds[-1]) / 60


def planned(ladder: LadderFindings) -> str:
    """Return how long all trainings take, and whether they repeat the text, in words."""
    minutes = f"{minutes_in_words(planned_minutes(ladder))} of training in all, evaluations not counted"
    return "\n".join(line for line in (minutes, repeats(ladder)) if line)


def passes(ladder: LadderFindings) -> float:
    """Return how many times the tokens of the training text the largest size reads."""
    return float(ladder.largest["tokens"] / ladder.corpus["train_tokens"])


def repeats(ladder: LadderFindings) -> str:
    """Return a warning where the largest size reads more tokens than the text has, else nothing."""
    if passes(ladder) <= 1:
        return ""
    return (
        f"the largest size reads {ladder.largest['tokens']:,} tokens of a text that has "
        f"{ladder.corpus['train_tokens']:,}: what is repeated teaches less (Muennighoff et al. 2023), and the law bends"
    )


def law_rows(predictions: Mapping[str, Forecast]) -> list[tuple[str, ...]]:
    """Return a row for each law, as `LAWS` names its cells."""
    rows: list[tuple[str, ...]] = []
    for axis, one in predictions.items():
        level, exponent = (
            one.fit.interval(of, LEVEL) for of in (lambda law: law.irreducible, lambda law: law.exponent)
        )
        low, high = one.interval(one.place)
        rows.append(
            (
                axis,
                f"{one.fit.law.irreducible:.3f} ({level[0]:.3f} to {level[1]:.3f})",
                f"{one.fit.law.exponent:.3f} ({exponent[0]:.3f} to {exponent[1]:.3f})",
                f"{one.told:.4f} ({low:.4f} to {high:.4f})",
                "" if one.measured is None else f"{one.measured:.4f}",
                "" if one.miss is None else f"{one.miss:+.2%}",
            )
        )
    return rows


def losses(runs: Sequence[LadderRun]) -> str:
    """Return the mean loss of the trainings of a size, with several the standard deviation behind it."""
    if not runs:
        return ""
    if len(runs) == 1:
        return f"{runs[0].loss:.4f}"
    return f"{mean(runs):.4f} \u00b1 {statistics.stdev(run.loss for run in runs):.4f}"


def mean(runs: Sequence[LadderRun]) -> float:
    """Return the mean loss."""
    return statistics.fmean(run.loss for run in runs)
