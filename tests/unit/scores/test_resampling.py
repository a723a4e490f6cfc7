"""Intervals that hold what they say, and tests of two systems against sacrebleu, scipy and exact counts."""

import itertools

import numpy as np
import pytest
from scipy import stats

from orrery.errors import DataError, UsageError
from orrery.scores.classification import accuracy, f1, matthews
from orrery.scores.mcnemar import mcnemar
from orrery.scores.regression import pearson, spearman, squared_error
from orrery.scores.resampled import Joint, mean_of
from orrery.scores.resampling import interval, paired_bootstrap, paired_randomisation
from orrery.scores.translation import bleu, ter


def labels(seed, size=40, kinds=3):
    rng = np.random.default_rng(seed)
    gold = rng.integers(kinds, size=size)
    return np.where(rng.random(size) < 0.7, gold, rng.integers(kinds, size=size)).tolist(), gold.tolist()


@pytest.mark.parametrize("of", [accuracy, f1, matthews, pearson, squared_error])
def test_a_score_of_sums_is_drawn_anew_as_the_plain_definition_says(of):
    """Sums of drawn examples give what the score of the drawn examples gives; so do mixtures of two systems."""
    (ours, gold), (theirs, _) = labels(0), labels(1)
    how = {"centre": 1.0} if of is pearson else {"labels": [0, 1, 2]} if of in (f1, matthews) else {}
    one, other = of(ours, gold, **how), of(theirs, gold, **how)
    rng = np.random.default_rng(2)
    drawn, swapped = rng.integers(40, size=(5, 40)), rng.integers(2, size=(5, 40)).astype(bool)
    plain = [of([ours[n] for n in row], [gold[n] for n in row]).score for row in drawn]
    assert one.of_drawn(drawn).tolist() == pytest.approx(plain, abs=1e-9)
    mixed = [of([(ours, theirs)[int(s)][n] for n, s in enumerate(row)], gold).score for row in swapped]
    assert one.of_mixed(other, swapped).tolist() == pytest.approx(mixed, abs=1e-9)
    pairs = [list(zip(side, gold, strict=True)) for side in (ours, theirs)]
    joint = [Joint("same", "", each, lambda drawn: of(*map(list, zip(*drawn, strict=True))).score) for each in pairs]
    assert joint[0].of_drawn(drawn).tolist() == pytest.approx(plain)
    assert joint[0].of_mixed(joint[1], swapped).tolist() == pytest.approx(mixed)
    assert joint[0].score == pytest.approx(one.score)


def test_systems_that_count_other_labels_are_not_mixed():
    one, other = f1(["a", "b"], ["a", "a"]), f1(["a", "c"], ["a", "a"])
    with pytest.raises(DataError, match="do not count the same"):
        paired_randomisation(one, other, trials=10)
    same = [f1(ours, ["a", "a"], labels=["a", "b", "c"]) for ours in (["a", "b"], ["a", "c"])]
    assert paired_randomisation(*same, trials=10).difference == 0


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_the_interval_holds_the_truth_as_often_as_it_says(level):
    rng, held = np.random.default_rng(0), 0
    for seed in range(300):
        right = rng.random(150) < 0.7
        bounds = interval(mean_of("accuracy", "", right.astype(float)), samples=400, level=level, seed=seed)
        held += bounds.low <= 0.7 <= bounds.high
    margin = 4 * (level * (1 - level) / 300) ** 0.5 + 0.01
    assert abs(held / 300 - level) < margin


def test_the_interval_is_that_of_scipy():
    values = np.random.default_rng(1).normal(size=80)
    ours = interval(mean_of("mean", "", values), samples=20_000)
    theirs = stats.bootstrap((values,), np.mean, n_resamples=20_000, method="percentile", rng=2).confidence_interval
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=0.01)


def test_seeds_and_signature():
    score = accuracy(*labels(0))
    assert interval(score, seed=1) == interval(score, seed=1) != interval(score, seed=2)
    assert interval(score).signature.startswith("bootstrap:percentile|samples:1000|undefined:0|seed:1337|orrery:")
    assert str(interval(score)).startswith("95 % interval 0.")
    assert interval(spearman([1, 1, 2], [1, 2, 3]), samples=200).signature.count("undefined:0") == 0


def test_what_cannot_be_drawn():
    one = mean_of("mean", "", [1.0])
    for call in (interval, lambda score: paired_bootstrap(score, score)):
        with pytest.raises(DataError, match="1 example cannot be drawn again"):
            call(one)
    with pytest.raises(DataError, match="2 examples of one system, 3 of the other"):
        paired_bootstrap(mean_of("mean", "", [1.0, 2.0]), mean_of("mean", "", [1.0, 2.0, 3.0]))
    with pytest.raises(UsageError, match="1 samples"):
        interval(mean_of("mean", "", [1.0, 2.0]), samples=1)
    with pytest.raises(UsageError, match=r"level 95"):
        interval(mean_of("mean", "", [1.0, 2.0]), level=95.0)


@pytest.fixture(scope="module")
def systems():
    """Two systems whose difference is neither sure nor nothing: words of the references lost at two rates."""
    rng = np.random.default_rng(5)
    words = [f"w{n}" for n in range(30)]
    references = [" ".join(rng.choice(words, size=12)) for _ in range(120)]
    lose = lambda rate: [" ".join(w if rng.random() > rate else "x" for w in r.split()) for r in references]  # noqa: E731
    return lose(0.20), lose(0.23), references


@pytest.mark.parametrize(("kind", "metric"), [("BLEU", bleu), ("TER", ter)])
def test_p_values_are_those_of_sacrebleu(systems, kind, metric):
    from sacrebleu import metrics
    from sacrebleu.significance import PairedTest

    ours, theirs, references = systems
    pair = [metric(side, references) for side in (ours, theirs)]
    for test, name, samples in ((paired_bootstrap, "bs", 1000), (paired_randomisation, "ar", 1000)):
        compared = test(*pair, samples)
        named = [("theirs", theirs), ("ours", ours)]
        _, table = PairedTest(named, {kind: getattr(metrics, kind)()}, [references], name, samples)()
        expected = table[kind][1].p_value
        error = (expected * (1 - expected) * 2 / samples) ** 0.5
        assert abs(compared.p - expected) < 4 * error + 2 / samples, name
        assert compared.difference == pytest.approx(table[kind][1].score - table[kind][0].score)
    assert 0.001 < expected < 0.999


def test_wins_know_which_way_is_better(systems):
    ours, theirs, references = systems
    for metric in (bleu, ter):
        compared = paired_bootstrap(metric(ours, references), metric(theirs, references))
        assert compared.wins > 0.5
        turned = paired_bootstrap(metric(theirs, references), metric(ours, references))
        assert compared.wins == pytest.approx(1 - turned.wins, abs=0.01)


def test_randomisation_is_the_exact_test_of_all_swaps():
    rng = np.random.default_rng(3)
    one, other = rng.normal(size=(2, 8)) + np.array([[0.6], [0.0]])
    signs = np.array(list(itertools.product([1, -1], repeat=8)))
    exact = (abs((signs * (one - other)).mean(1)) >= abs((one - other).mean()) - 1e-12).mean()
    larger = (abs((signs * (one - other)).mean(1)) > abs((one - other).mean()) + 1e-12).mean()
    compared = paired_randomisation(mean_of("m", "", one), mean_of("m", "", other), trials=20_000)
    assert larger - 0.01 < compared.p < exact + 0.01


def test_a_system_against_itself_differs_by_nothing():
    score = accuracy(*labels(0))
    assert paired_bootstrap(score, score).difference == 0
    assert paired_randomisation(score, score, trials=100).p == pytest.approx(1 / 101)  # as sacrebleu: 0 is not chance


@pytest.mark.parametrize("seed", range(10))
def test_mcnemar_is_the_sign_test(seed):
    rng = np.random.default_rng(seed)
    one, other = rng.random((2, 50)) < [[0.8], [0.6]]
    b, c = int((one & ~other).sum()), int((other & ~one).sum())
    compared = mcnemar(one.tolist(), other.tolist())
    assert compared.p == pytest.approx(stats.binomtest(b, b + c).pvalue)
    assert compared.difference == pytest.approx((b - c) / 50)
    assert f"alone:{b}/{c}" in compared.signature


def test_mcnemar_without_a_difference():
    assert mcnemar([True, False], [True, False]).p == 1
    with pytest.raises(DataError, match="0 predicted"):
        mcnemar([], [])
