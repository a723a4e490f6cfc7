"""Average precision against pycocotools, and the parts of it against plain loops."""

import json
from pathlib import Path

import numpy as np
import pytest

from drawn_boxes import drawn_case
from orrery.errors import DataError
from orrery.scores.detection import THRESHOLDS, Found, Right, average_precision, overlaps

GIVEN = json.loads((Path(__file__).parents[2] / "data" / "average_precision.json").read_text())["scores"]


@pytest.mark.parametrize("seed", sorted(map(int, GIVEN)))
def test_it_is_that_of_pycocotools(seed):
    right, said = drawn_case(seed)
    found = [average_precision(said, right, bounds).score for bounds in (THRESHOLDS, (0.5,), (0.75,))]
    assert found == pytest.approx(GIVEN[str(seed)], abs=1e-12)


def test_perfect_boxes_have_one_and_none_have_nothing():
    right, _ = drawn_case(1)
    said = [[Found(each.label, each.box, 0.5) for each in own if not each.crowd] for own in right]
    assert average_precision(said, right).score == pytest.approx(1)
    assert average_precision([[] for _ in right], right).score == 0
    assert average_precision([[]], [[]]).score == 0
    with pytest.raises(DataError, match="0 predicted pictures"):
        average_precision([], [])


def test_a_box_beyond_a_crowd_counts_against_and_one_inside_does_not():
    crowd = Right("a", (0.0, 0.0, 50.0, 50.0), crowd=True)
    thing = Right("a", (60.0, 60.0, 10.0, 10.0))
    sure, sought = Found("a", (5.0, 5.0, 10.0, 10.0), 0.9), Found("a", thing.box, 0.5)
    assert average_precision([[sure, sought]], [[crowd, thing]], (0.5,)).score == pytest.approx(1)
    away = Found("a", (80.0, 5.0, 10.0, 10.0), 0.9)
    assert average_precision([[away, sought]], [[crowd, thing]], (0.5,)).score == pytest.approx(0.5)


def test_overlaps_are_shared_pixels_over_those_of_either():
    rng = np.random.default_rng(0)
    one, other = (np.concatenate([rng.integers(0, 9, (12, 2)), rng.integers(1, 9, (12, 2))], 1) for _ in range(2))

    def pixels(box):
        left, top, width, height = box
        return {(x, y) for x in range(left, left + width) for y in range(top, top + height)}

    found = overlaps(one.astype(float), other.astype(float), np.zeros(12, bool))
    for n, m in np.ndindex(12, 12):
        a, b = pixels(one[n].tolist()), pixels(other[m].tolist())
        assert found[n, m] == pytest.approx(len(a & b) / len(a | b))


def test_a_sample_is_scored_as_if_it_were_all():
    right, said = drawn_case(12)
    score = average_precision(said, right)
    drawn = np.random.default_rng(0).permutation(len(right))[:9]
    alone = average_precision([said[n] for n in drawn], [right[n] for n in drawn])
    assert score.of_drawn(drawn[None])[0] == pytest.approx(alone.score, abs=1e-12)
    nothing = average_precision([[] for _ in right], right)
    swapped = np.zeros((2, len(right)), bool)
    swapped[1] = True
    assert score.of_mixed(nothing, swapped).tolist() == pytest.approx([score.score, 0.0])
    half = swapped[:1].copy()
    half[0, ::2] = True
    mixed = [[] if n % 2 == 0 else own for n, own in enumerate(said)]
    assert score.of_mixed(nothing, half)[0] == pytest.approx(average_precision(mixed, right).score, abs=1e-12)


def test_an_overlap_that_is_a_threshold_counts_as_pycocotools_counts_it():
    """17 of 20 columns: pycocotools 2.0.11 has 0.85 among its thresholds, to the last bit, and says 0.8."""
    right, said = [[Right("a", (0.0, 0.0, 20.0, 10.0))]], [[Found("a", (0.0, 0.0, 17.0, 10.0), 0.5)]]
    assert average_precision(said, right).score == pytest.approx(0.8, abs=1e-12)
