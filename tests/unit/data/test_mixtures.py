import itertools
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from orrery.data.batches.mixtures import Component, MixtureBatches, Shares, largest_remainder, normalised, stacked
from orrery.data.batches.token_windows import IGNORE, CropBatches, PackedBatches, PaddedBatches
from orrery.errors import UsageError

weights = st.lists(st.floats(0.01, 100, allow_nan=False), min_size=1, max_size=6)


def drawn(shares: Shares, draws: int) -> list[int]:
    return [shares.draw(number)[0] for number in range(draws)]


def documents(count: int, first: int) -> list[np.ndarray]:
    """Documents of nine tokens; each token says which document, so that no two of any corpus are equal."""
    return [np.full(9, first + number, np.uint32) for number in range(count)]


def packed_mixture(size: int = 4, seed: int = 3) -> MixtureBatches:
    few, many = (PackedBatches(documents(count, first), 9, 1, seed) for count, first in ((5, 100), (400, 1000)))
    return MixtureBatches([Component("few", few, 3), Component("many", many, 1)], size, seed)


def first_tokens(source: MixtureBatches, steps: int) -> list[int]:
    return [int(token) for step in range(steps) for token in source.batch(step)["ids"][:, 0]]


def test_every_block_has_exactly_the_counts_of_the_weights() -> None:
    shares = Shares([3, 1], seed=0)
    for block in range(5):
        drawn = [shares.draw(number)[0] for number in range(block * 1000, (block + 1) * 1000)]
        assert np.bincount(drawn).tolist() == [750, 250]


def test_weights_that_do_not_divide_a_block_do_not_drift() -> None:
    shares = Shares([60, 22, 8, 8, 3], seed=0)
    assert shares.counts(101_000).tolist() == [60_000, 22_000, 8_000, 8_000, 3_000]
    for blocks in range(1, 200):
        exact = [weight * blocks * 1000 / 101 for weight in (60, 22, 8, 8, 3)]
        assert np.abs(shares.counts(blocks * 1000) - exact).max() < 1


@given(weights, st.integers(0, 40))
def test_counts_only_grow_and_stay_within_one_of_the_weights(weights: list[float], blocks: int) -> None:
    shares = Shares(weights, seed=1)
    before, after = (shares.counts(n * shares.block) for n in (blocks, blocks + 1))
    assert (after > before).all()
    assert after.sum() == (blocks + 1) * shares.block
    expected = np.array(weights) / sum(weights) * (blocks + 1) * shares.block
    assert np.abs(after - expected).max() < 1 + 1e-6


def test_a_draw_says_how_often_its_corpus_was_drawn_before() -> None:
    shares, seen = Shares([5, 3, 0.5], seed=2), [0, 0, 0]
    for number in range(3500):
        assert shares.counts(number).tolist() == seen
        corpus, before = shares.draw(number)
        assert before == seen[corpus]
        seen[corpus] += 1


def test_draws_are_mixed_within_a_block_and_differ_between_blocks_and_seeds() -> None:
    first, again, other = (drawn(Shares([1, 1], seed), 2000) for seed in (0, 0, 1))
    assert first == again
    assert first[:1000] != first[1000:]
    assert first != other
    runs = 1 + sum(a != b for a, b in itertools.pairwise(first))
    assert abs(runs - 1000) < 5 * 500**0.5  # a fair order changes corpus at half of its places


@given(weights, st.integers(0, 10_000))
def test_largest_remainder_gives_whole_parts_and_the_largest_remainders_one_more(w: list[float], total: int) -> None:
    shares = normalised(w)
    counts = largest_remainder(shares, total)
    assert sum(counts) == total
    errors = [share * total - count for share, count in zip(shares, counts, strict=True)]
    assert all(-1 < error < 1 for error in errors)
    rounded_up = [error + 1 for error in errors if error < 0]  # the remainders that won a draw
    assert not rounded_up or min(rounded_up) >= max([error for error in errors if error >= 0], default=0)


def test_weights_are_decimals_and_need_not_add_to_one() -> None:
    assert normalised([0.6, 0.22, 0.08, 0.08, 0.03]) == normalised([60, 22, 8, 8, 3])
    assert normalised([0.1, 0.2])[0] == Fraction(1, 3)


@pytest.mark.parametrize("weights", [[1, 0], [1, -1], [1, float("nan")], [float("inf"), 1], [], [1, 1e-9]])
def test_weights_that_mean_nothing_are_refused(weights: list[float]) -> None:
    with pytest.raises(UsageError):
        Shares(weights, seed=0)


def test_a_small_corpus_is_repeated_in_a_new_order_each_epoch() -> None:
    source = packed_mixture()
    few = [token for token in first_tokens(source, 100) if token < 1000]
    assert len(few) > 250
    epochs = [few[start : start + 5] for start in range(0, len(few) - 5, 5)]
    assert all(sorted(epoch) == [100, 101, 102, 103, 104] for epoch in epochs)
    assert len(set(map(tuple, epochs))) > 10
    many = [token for token in first_tokens(source, 100) if token >= 1000]
    assert len(set(many)) == len(many)  # nothing of the large corpus comes twice in its first epoch


def test_epochs_are_what_was_seen() -> None:
    source = packed_mixture()
    for step in (0, 1, 7, 100, 600):
        seen = first_tokens(source, step)
        few = sum(token < 1000 for token in seen)
        assert source.epochs(step) == {"few": few / 5, "many": (len(seen) - few) / 400}


def test_a_batch_depends_on_seed_and_step_alone() -> None:
    source, fresh = packed_mixture(), packed_mixture()
    batches = [source.batch(step) for step in range(300)]
    for step in (299, 0, 250, 1):
        assert all(torch.equal(fresh.batch(step)[name], tensor) for name, tensor in batches[step].items())
    assert first_tokens(packed_mixture(seed=4), 20) != first_tokens(source, 20)
    assert source.state() == {}


def test_the_size_of_a_batch_changes_no_order() -> None:
    assert first_tokens(packed_mixture(size=4), 50) == first_tokens(packed_mixture(size=10), 20)


def test_padded_rows_of_unlike_length_are_padded_together() -> None:
    lengths = ((3, 4, 2), (7, 6, 8))
    sources = [PaddedBatches([np.arange(1, n) for n in each], 1, 0, length=9) for each in lengths]
    batch = MixtureBatches([Component("a", sources[0], 1), Component("b", sources[1], 1)], 6, 0).batch(0)
    assert batch["real"].dtype == torch.bool
    assert (batch["ids"][~batch["real"]] == 0).all()
    assert (batch["targets"][~batch["real"]] == IGNORE).all()
    assert batch["ids"].shape == batch["targets"].shape == batch["real"].shape
    with pytest.raises(KeyError):
        stacked([{"targets": torch.zeros(1, 2)}])


def test_crops_of_each_corpus_keep_to_it() -> None:
    sources = [CropBatches(np.arange(first, first + 50), 8, 1, seed=0) for first in (0, 1000)]
    batch = MixtureBatches([Component(str(i), source, 1) for i, source in enumerate(sources)], 64, 0).batch(0)
    assert torch.equal(batch["ids"][:, 1:], batch["targets"][:, :-1])
    assert ((batch["ids"] < 50).all(1) | (batch["ids"] >= 1000).all(1)).all()


def test_a_name_twice_is_refused() -> None:
    source = CropBatches(np.arange(50), 8, 1, seed=0)
    with pytest.raises(UsageError, match="twice"):
        MixtureBatches([Component("a", source, 1), Component("a", source, 1)], 4, 0)
