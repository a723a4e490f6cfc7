"""How well a number tells what was chosen from what was rejected: within pairs, or among replies that stand alone."""

from collections.abc import Sequence

import numpy as np

from orrery.data.rows.preferences import Preference
from orrery.scores.resampled import Joint, Resampled, mean_of

Judged = tuple[float, bool]
"""What a reply is worth, and whether it is desirable."""


def told_apart(rows: Sequence[Preference], values: Sequence[float], how: str, name: str = "") -> Resampled | None:
    """Return how often the chosen reply has the larger value, or nothing where no two replies can be compared.

    Of pairs it is a share of pairs, and a tie is wrong. Where no row has both sides it is the chance that a desirable
    reply has more than an undesirable one to whatever prompt (the area under the ROC curve), and a tie is half right.

    Args:
        rows: pairs, or replies that stand alone; beside pairs those that stand alone are not compared.
        values: of each side of each row, one after the other.
        how: what the values are.
        name: of the score of pairs, ``accuracy`` by default; that of replies alone is a ``separation``.
    """
    left = iter(values)
    each = [[(next(left), good) for _, good in row.sides] for row in rows]
    if right := [float(sides[0][0] > sides[1][0]) for sides in each if len(sides) > 1]:
        return mean_of(name or "accuracy", f"pairs|{how}, chosen > rejected", right)
    judged = [sides[0] for sides in each]
    if len({good for _, good in judged}) < 2:
        return None
    called = f"{name}-separation" if name else "separation"
    return Joint(called, f"unpaired|{how}, desirable > undesirable", judged, separation)


def separation(judged: Sequence[Judged]) -> float:
    """Return the share of desirable and undesirable replies, each with each, of which the desirable has the more.

    The statistic of Mann and Whitney (1947) over the number of these; 1/2 where there is one kind alone.
    """
    values_N, good_N = np.array([value for value, _ in judged]), np.array([good for _, good in judged], bool)
    good, bad = int(good_N.sum()), int((~good_N).sum())
    if not good or not bad:
        return 0.5
    _, place_N, count_P = np.unique(values_N, return_inverse=True, return_counts=True)
    rank_P = np.cumsum(count_P) - (count_P - 1) / 2
    return float((rank_P[place_N][good_N].sum() - good * (good + 1) / 2) / (good * bad))
