"""Batches of so many tokens: no batch above, none that could hold its next row, every row once, a function of the step.

The oracle of the cut goes row by row; that of an epoch is written down from the definition.
"""

import numpy as np
import pytest

from orrery.data.batches.by_tokens import TokenBatches, cut
from orrery.data.batches.choosing_rows import SizedBatches, padding_share, row_batches
from orrery.errors import UsageError


def lengths(seed, count=500, sides=2, longest=40):
    return np.random.default_rng(seed).integers(1, longest + 1, (count, sides))


def cut_row_by_row(rows, tokens):
    """Return the sizes of the batches: a row enters unless rows * longest would be more than ``tokens`` on a side."""
    sizes, batch = [], []
    for row in rows.tolist():
        if batch and any((len(batch) + 1) * max(side) > tokens for side in zip(*batch, row, strict=True)):
            sizes.append(len(batch))
            batch = []
        batch.append(row)
    return [*sizes, len(batch)] if batch else sizes


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("sides", [1, 2, 3])
@pytest.mark.parametrize("in_order", [True, False])
def test_the_cut_is_the_one_made_row_by_row(seed, sides, in_order):
    rows = lengths(seed, 1 + seed * 40, sides)
    rows = rows[np.lexsort(rows.T)] if in_order else rows
    tokens = int(np.random.default_rng(seed).integers(40, 400))
    slices = list(cut(rows, tokens))
    assert [piece.stop - piece.start for piece in slices] == cut_row_by_row(rows, tokens)
    assert [piece.start for piece in slices] == [0, *(piece.stop for piece in slices[:-1])]


def test_nothing_is_cut_of_nothing_and_a_row_too_long_is_refused():
    assert list(cut(np.zeros((0, 2), np.int64), 5)) == []
    with pytest.raises(UsageError, match="a row of 9 tokens does not fit into a batch of 8"):
        list(cut(np.array([[3, 4], [2, 9]]), 8))


@pytest.mark.parametrize("seed", range(3))
def test_each_epoch_has_every_row_once_within_the_tokens(seed):
    rows, tokens = lengths(seed), 200
    batches = TokenBatches(rows, tokens, seed, pool=8)
    step, counts, orders = 0, [], []
    for epoch in range(5):
        drawn = []
        first = step
        assert batches.epochs(step) == epoch
        while batches.epochs(step) < epoch + 1:
            numbers = batches.rows(step)
            assert (len(numbers) * rows[numbers].max(axis=0) <= tokens).all()
            assert batches.epochs(step) == pytest.approx(epoch + len(drawn) / len(rows))
            drawn += numbers.tolist()
            step += 1
        assert sorted(drawn) == list(range(len(rows)))
        orders.append(drawn)
        counts.append(step - first)
    assert len({tuple(order) for order in orders}) == 5
    assert batches.per_epoch == counts[0]


def test_a_step_is_found_from_anywhere():
    rows = lengths(1)
    going = TokenBatches(rows, 150, seed=3)
    expected = [going.rows(step) for step in range(700)]
    for step in (699, 0, 350, 41):  # each in a fresh one, as after a resume; and back again in the first
        assert np.array_equal(TokenBatches(rows, 150, seed=3).rows(step), expected[step])
        assert np.array_equal(going.rows(step), expected[step])
    assert not np.array_equal(TokenBatches(rows, 150, seed=4).rows(0), expected[0])


def test_rows_of_like_length_come_together():
    rows = lengths(2, 3000)
    by_tokens = padding_share(rows, TokenBatches(rows, 400, seed=0))
    unsorted = padding_share(rows, TokenBatches(rows, 400, seed=0, pool=1))
    by_size = padding_share(rows, SizedBatches(rows, 20, seed=0))
    assert by_tokens < 0.3 < unsorted
    assert by_size < unsorted


def test_the_share_of_padding_is_that_of_the_rectangles():
    rows = lengths(5, 97)
    batches = TokenBatches(rows, 130, seed=1)
    padded = real = 0
    for step in range(int(batches.per_epoch)):
        for side in rows[batches.rows(step)].T:
            padded += sum(int(side.max()) - int(length) for length in side)
            real += int(side.sum())
    assert padding_share(rows, batches) == pytest.approx(padded / (padded + real), rel=1e-12)


def test_rows_or_tokens():
    rows = lengths(6)
    assert isinstance(row_batches(rows, 8, None, 0), SizedBatches)
    assert isinstance(row_batches(rows, 200, 200, 0), TokenBatches)


def test_batches_of_rows_are_those_of_earlier_versions():
    """Shuffled, sorted within a pool by target and source, written down as before the two ways had one interface."""
    from orrery.data.batches.order import Shuffled

    rows, size, seed, pool = lengths(7, 61), 5, 11, 64
    numbers = Shuffled(61, seed).items(pool * size, 2 * pool * size)
    order = sorted(range(pool * size), key=[(rows[n][1], rows[n][0]) for n in numbers].__getitem__)
    batches = np.asarray(numbers)[order].reshape(pool, size)
    batches = batches[np.random.default_rng([seed, 1, 1]).permutation(pool)]
    sized = SizedBatches(rows, size, seed)
    assert np.array_equal([sized.rows(pool + step) for step in range(pool)], batches)
