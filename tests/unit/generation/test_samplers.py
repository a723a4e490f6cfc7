import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import (
    MinPLogitsWarper,
    RepetitionPenaltyLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
    TypicalLogitsWarper,
)

from orrery.errors import UsageError
from orrery.generation.filters import (
    FrequencyPenalty,
    History,
    LogitBias,
    MinP,
    PresencePenalty,
    RepetitionPenalty,
    Temperature,
    TopK,
    TopP,
    TypicalP,
    VocabularyLimit,
)
from orrery.generation.samplers import GREEDY, draw, sampler

NOTHING = History.of([[]] * 6, torch.zeros(6, 50))


def logits(seed=0):
    return torch.randn(6, 50, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)) * 3


def generators(*seeds):
    return [torch.Generator().manual_seed(seed) for seed in seeds]


@pytest.mark.parametrize("value", [0.1, 0.7, 3.0])
def test_temperature_is_that_of_transformers(value):
    theirs = TemperatureLogitsWarper(value)(None, logits())
    torch.testing.assert_close(Temperature(value)(logits(), NOTHING).softmax(-1), theirs.softmax(-1))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (TopK(1), TopKLogitsWarper(1)),
        (TopK(7), TopKLogitsWarper(7)),
        (TopK(99), TopKLogitsWarper(99)),
        (TopP(1e-9), TopPLogitsWarper(1e-9)),
        (TopP(0.3), TopPLogitsWarper(0.3)),
        (TopP(0.95), TopPLogitsWarper(0.95)),
        (MinP(0.02), MinPLogitsWarper(0.02)),
        (MinP(1.0), MinPLogitsWarper(1.0)),
        (TypicalP(1e-9), TypicalLogitsWarper(1e-9)),
        (TypicalP(0.2), TypicalLogitsWarper(0.2)),
        (TypicalP(0.9), TypicalLogitsWarper(0.9)),
    ],
    ids=lambda filter: type(filter).__name__,
)
def test_filters_are_those_of_transformers(ours, theirs, seed):
    assert torch.equal(ours(logits(seed), NOTHING), theirs(None, logits(seed)))


def test_repetition_penalty_is_that_of_transformers():
    ids = torch.randint(0, 50, (6, 9), generator=torch.Generator().manual_seed(1))
    seen = History.of(ids.tolist(), logits())
    theirs = RepetitionPenaltyLogitsProcessor(1.3)(ids, logits())
    assert torch.equal(RepetitionPenalty(1.3)(logits(), seen), theirs)


@pytest.mark.parametrize("window", [1, 3, 4, 9, 40])
def test_a_penalty_with_a_window_counts_the_last_tokens_of_the_row(window):
    """Of rows that begin with prompts of other lengths, while tokens come and rows leave."""
    rows = [[1, 2, 3, 2], [7], [], [4, 4, 4, 4, 4, 4], [9, 8], [5, 6, 7]]
    penalty = sampler(repetition_penalty=1.3, repetition_window=window)
    assert penalty.window == window
    history = History.of(rows, logits(), window=window)
    alone = History.joined([History.of([row], logits()[:1], window=window) for row in rows])
    live = list(range(6))
    for step, token in enumerate((3, 4, 2, 3, 8)):
        for place in live:
            rows[place] = [*rows[place], token + place]
        tokens = torch.tensor([token + place for place in live])
        history.add(tokens)
        alone.add(tokens)
        z = logits(step)[live]
        expected = torch.stack(
            [
                RepetitionPenaltyLogitsProcessor(1.3)(torch.tensor([rows[place][-window:]]), z[at : at + 1])[0]
                for at, place in enumerate(live)
            ]
        )
        assert torch.equal(penalty.filtered(z, history), expected)
        assert torch.equal(penalty.filtered(z, alone), expected)
        if step == 2:
            live = [0, 2, 5]
            history, alone = history.select(live), alone.select(live)
    begun = [row[:2] for row in (rows[0], rows[2], rows[5])]
    answers = [row[2:] for row in (rows[0], rows[2], rows[5])]
    again = History.of(begun, logits()[:3], answers, window)
    assert torch.equal(again.within(window), history.within(window))


def test_the_whole_chain_in_the_order_of_transformers():
    ids = torch.randint(0, 50, (6, 9), generator=torch.Generator().manual_seed(1))
    expected = logits()
    for part in (
        RepetitionPenaltyLogitsProcessor(1.3),
        TemperatureLogitsWarper(1.7),
        TopKLogitsWarper(30),
        TopPLogitsWarper(0.9),
        MinPLogitsWarper(0.05),
    ):
        expected = part(ids, expected)
    chain = sampler(temperature=1.7, top_k=30, top_p=0.9, min_p=0.05, repetition_penalty=1.3)
    filtered = chain.filtered(logits(), History.of(ids.tolist(), logits()))
    torch.testing.assert_close(filtered.softmax(-1), expected.softmax(-1))
    assert torch.equal(filtered.isinf(), expected.isinf())


def test_penalties_count_the_answer_and_not_the_prompt():
    history = History.of([[1, 2, 2]] * 6, logits())
    for token in (3, 4, 4, 4):
        history.add(torch.full((6,), token))
    presence = PresencePenalty(0.5)(logits(), history) - logits()
    frequency = FrequencyPenalty(-0.25)(logits(), history) - logits()
    torch.testing.assert_close(presence[0, :6], torch.tensor([0, 0, 0, -0.5, -0.5, 0], dtype=torch.float64))
    torch.testing.assert_close(frequency[0, :6], torch.tensor([0, 0, 0, 0.25, 0.75, 0], dtype=torch.float64))
    assert history.seen[0].nonzero()[:, 0].tolist() == [1, 2, 3, 4]


def test_a_history_follows_its_rows():
    history = History.of([[1], [2], [3]], torch.zeros(3, 6))
    history.add(torch.tensor([4, 4, 5]))
    assert torch.equal(history.select([2, 0]).written_BV, history.written_BV[[2, 0]])
    kept = history.select([1])
    kept.add(torch.tensor([0]))  # a selection counts on its own
    assert int(history.written_BV[:, 0].sum()) == 0


def test_a_bias_is_added_to_its_token():
    z = LogitBias.of({7: 2.5, 3: -1.0})(logits(), NOTHING) - logits()
    assert z[:, 7].tolist() == pytest.approx([2.5] * 6)
    assert z[:, 3].tolist() == pytest.approx([-1.0] * 6)
    assert int((z != 0).sum()) == 12
    always = sampler(logit_bias={9: 1000.0})(logits(), NOTHING, [])
    assert always.tolist() == [9] * 6


def test_a_token_that_is_impossible_is_never_typical():
    z = logits()
    z[:, 10:] = float("-inf")
    filtered = TypicalP(0.99)(z, NOTHING)
    assert bool(filtered[:, 10:].isinf().all())
    assert not bool(filtered.isnan().any())
    assert bool(filtered.isfinite().any(-1).all())


@given(st.integers(0, 1000), st.floats(0.01, 0.99))
def test_a_draw_lies_in_the_smallest_nucleus(seed, p):
    z = logits(seed)
    token = sampler(temperature=1.0, top_p=p)(z, NOTHING, generators(*range(seed, seed + 6)))
    mass = z.softmax(-1)
    own = mass.gather(1, token[:, None])
    assert bool(((mass * (mass > own)).sum(-1) < p + 1e-12).all())


def test_draws_have_the_probabilities():
    z = torch.tensor([[0.0, 1.0, float("-inf"), 2.0]], dtype=torch.float64).expand(20_000, 4)
    tokens = draw(z, [torch.Generator().manual_seed(seed) for seed in range(20_000)])
    expected = z[0].softmax(-1) * 20_000
    counts = torch.bincount(tokens, minlength=4)
    assert counts[2] == 0
    assert float(((counts - expected) ** 2 / expected)[[0, 1, 3]].sum()) < 13.8  # chi-square, 2 degrees, p = 0.001


def test_a_draw_depends_on_its_own_row_alone():
    together = draw(logits(), generators(0, 1, 2, 3, 4, 5))
    alone = [int(draw(logits()[row : row + 1], generators(row))) for row in range(6)]
    assert together.tolist() == alone


@pytest.mark.parametrize("temperature", [1e-40, 1e-12, 1e-3])
def test_a_temperature_close_to_zero_is_greedy(temperature):
    greedy = GREEDY(logits(), NOTHING, [])
    assert torch.equal(sampler(temperature=temperature)(logits(), NOTHING, generators(*range(6))), greedy)
    assert torch.equal(sampler(temperature=0.0, top_k=3)(logits(), NOTHING, []), greedy)


def test_ids_without_a_spelling_are_never_chosen():
    z = logits()
    z[:, 40:] = 100.0
    assert int(sampler(temperature=1.0, vocabulary=40)(z, NOTHING, generators(*range(6))).max()) < 40
    assert torch.equal(VocabularyLimit(50)(z, NOTHING), z)


@pytest.mark.parametrize(
    "setting",
    [
        {"temperature": -1.0},
        {"temperature": float("nan")},
        {"temperature": float("inf")},
        {"top_k": -2},
        {"top_k": 2.5},
        {"top_p": 0.0},
        {"top_p": 1.1},
        {"min_p": -0.1},
        {"repetition_penalty": 0.0},
        {"repetition_window": 0},
        {"typical_p": 0.0},
        {"presence_penalty": float("nan")},
        {"frequency_penalty": float("inf")},
        {"logit_bias": {-1: 1.0}},
        {"logit_bias": {7: float("nan")}},
        {"logit_bias": {7: 1.0}, "vocabulary": 7},
    ],
    ids=str,
)
def test_settings_outside_their_range_are_named(setting):
    with pytest.raises(UsageError, match=next(iter(setting))):
        sampler(**setting)


@pytest.mark.parametrize("p", [0.01, 0.5, 0.9, 0.999, 1.0])
@pytest.mark.parametrize("kind", [TopP, TypicalP])
def test_what_stays_of_a_large_vocabulary_is_what_an_order_of_all_leaves(kind, p):
    """Peaked and flat rows, ties among them, and rows of which most is impossible."""
    z = torch.randn(6, 3000, generator=torch.Generator().manual_seed(2)) * torch.tensor([[9.0, 3, 1, 0.1, 0, 5]]).T
    z[2] = z[2].round(decimals=1)
    z[5, 40:] = float("-inf")
    logp = z.log_softmax(-1)
    entropy = -(logp.exp() * logp).nan_to_num(0.0).sum(-1, keepdim=True)
    rank = z if kind is TopP else -(logp + entropy).abs()
    order = rank.argsort(dim=-1, descending=True, stable=True)
    mass = z.softmax(-1).gather(1, order)
    outside = mass.cumsum(-1) - mass >= p
    outside[:, 0] = False
    expected = z.masked_fill(torch.zeros_like(outside).scatter(1, order, outside), float("-inf"))
    assert torch.equal(kind(p)(z, NOTHING), expected)
