"""The mean IoU and the share of right pixels, against plain counts."""

import numpy as np
import pytest

from orrery.errors import DataError
from orrery.scores.segmentation import iou_of_each, mean_iou, pixel_accuracy


def drawn(seed):
    rng = np.random.default_rng(seed)
    right = [rng.integers(-1, 4, rng.integers(2, 7, 2)) for _ in range(5)]
    said = [np.where(rng.random(each.shape) < 0.6, each, rng.integers(0, 4, each.shape)).clip(0) for each in right]
    return said, [np.where(each < 0, -100, each) for each in right]


@pytest.mark.parametrize("seed", range(8))
def test_it_is_what_sets_of_pixels_share(seed):
    said, right = drawn(seed)
    pixels = [(n, *place) for n, each in enumerate(right) for place in np.ndindex(each.shape) if each[place] != -100]
    values = []
    for label in range(5):
        ours, theirs = ({p for p in pixels if side[p[0]][p[1:]] == label} for side in (said, right))
        if ours | theirs:
            values.append(len(ours & theirs) / len(ours | theirs))
    score = mean_iou(said, right, 5)
    assert score.score == pytest.approx(np.mean(values), abs=1e-12)
    assert iou_of_each(score.sums.sum(0))[:4].tolist() == pytest.approx(values[:4])
    assert np.isnan(iou_of_each(score.sums.sum(0))[4])
    hits = sum(said[p[0]][p[1:]] == right[p[0]][p[1:]] for p in pixels)
    assert pixel_accuracy(said, right).score == pytest.approx(hits / len(pixels))


def test_nothing_asked_has_nothing():
    assert mean_iou([np.zeros((2, 2), int)], [np.full((2, 2), -100)], 3).score == 0
    with pytest.raises(DataError, match="0 predicted pictures"):
        mean_iou([], [], 3)
