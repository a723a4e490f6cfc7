"""Simple methods of recommendation against their definitions, written out in plain loops."""

import math
from collections import Counter

import numpy as np
import pytest

from orrery.scores.ranks import gain
from orrery.tasks.next_items.baselines import (
    BACKED,
    GAPS,
    RECENT,
    ItemNeighbours,
    MarkovGaps,
    Popularity,
    candidates,
    ranks,
    tuned,
)

SIZE = 9


def drawn(seed):
    rng = np.random.default_rng(seed)
    return [rng.integers(0, SIZE - 1, rng.integers(1, 30)).tolist() for _ in range(25)]  # the last item never comes


def share(histories, item):
    counts = Counter(each for history in histories for each in history)
    return BACKED * counts[item] / counts.total()


@pytest.mark.parametrize("seed", range(3))
def test_popularity_counts_actions(seed):
    histories = drawn(seed)
    counts = Counter(item for history in histories for item in history)
    assert Popularity.counted(histories, SIZE).scores([1]).tolist() == [counts[item] for item in range(SIZE)]


@pytest.mark.parametrize("decay", [1.0, 0.5])
def test_item_neighbours_add_cosines_of_users_the_newest_most(decay):
    histories = drawn(0)
    users = [{n for n, history in enumerate(histories) if item in history} for item in range(SIZE)]
    asked = drawn(1)[0]
    found = ItemNeighbours(histories, SIZE, decay).scores(asked)
    for item in range(SIZE):
        wanted = share(histories, item)
        for age, other in enumerate(reversed(asked[-RECENT:])):
            if item != other and users[item] and users[other]:
                both = len(users[item] & users[other])
                wanted += decay**age * both / math.sqrt(len(users[item]) * len(users[other]))
        assert found[item] == pytest.approx(wanted, abs=1e-12)


@pytest.mark.parametrize("decay", [1.0, 0.3])
def test_markov_adds_what_came_so_many_places_behind(decay):
    histories = drawn(2)
    asked = drawn(3)[0]
    found = MarkovGaps.counted(histories, SIZE, decay).scores(asked)
    wanted = [share(histories, item) for item in range(SIZE)]
    for gap in range(1, min(GAPS, len(asked)) + 1):
        after = Counter(
            history[t + gap] for history in histories for t in range(len(history) - gap) if history[t] == asked[-gap]
        )
        for item in range(SIZE):
            wanted[item] += decay ** (gap - 1) * after[item] / max(1, after.total())
    assert found.tolist() == pytest.approx(wanted, abs=1e-12)


def test_short_histories_and_unknown_items_have_scores():
    for method in (ItemNeighbours([[0], [0]], 3, 1.0), MarkovGaps.counted([[0], [0]], 3, 1.0)):
        assert method.scores([2]).tolist() == pytest.approx([BACKED, 0.0, 0.0])
        assert np.isfinite(method.scores([])).all()


def test_items_of_the_history_are_left_out_unless_they_are_asked_for():
    items = np.array([False, True, True, True])
    assert candidates(items, [[1], [3, 2]], seen=False).tolist() == [
        [False, False, True, True],
        [False, True, False, False],
    ]
    assert candidates(items, [[1]], seen=True).tolist() == [items.tolist()]


def test_a_decay_is_the_best_of_those_that_are_tried():
    histories = [[0, 1, 2, 3] * 4, [4, 5, 6, 7] * 4, [0, 1, 2, 3] * 4]
    asked, right, items = [each[:-1] for each in histories], [each[-1] for each in histories], np.ones(SIZE, bool)
    decay, method = tuned(lambda d: MarkovGaps.counted(histories, SIZE, d), asked, right, items, seen=True)
    best = gain(10, ranks(method, asked, right, items, True)).score
    for other in (1.0, 0.5, 0.1):
        assert gain(10, ranks(MarkovGaps.counted(histories, SIZE, other), asked, right, items, True)).score <= best
    assert method.decay == decay
