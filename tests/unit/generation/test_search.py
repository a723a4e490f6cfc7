"""Beams against greedy decoding, against every answer counted by whole forwards, and against themselves alone."""

import itertools
import math
from typing import ClassVar

import pytest
import torch

from orrery.errors import RunError, UsageError
from orrery.families import load_family
from orrery.generation.generate import generate
from orrery.generation.row import Limits
from orrery.generation.search import LengthPenalty, beam_search, exhaustive
from orrery.schema.writing import refuse_with_beams
from tiny_models import TOKENIZER, tiny

PROMPTS = [[5, 9, 200, 31], [7], [8, 8, 120, 14, 250, 3, 77], [40, 41]]
SOURCES = [[1, 2, 3], [4, 0, 2, 1, 3], [3]]
VOCABULARY = 5
END = 4


@pytest.fixture(scope="module", params=["gpt2", "llama"])
def model(request):
    return tiny(request.param, torch.float64)


@pytest.fixture(scope="module", params=["gpt2", "llama", "bart", "t5"])
def small(request):
    """Return a model of five tokens, for which every answer can be looked at."""
    family = load_family(request.param)
    model = family.spec({**family.TINY, "vocab_size": VOCABULARY}).build(0).double().eval()
    rng = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=rng, dtype=torch.float64) * 0.3)
    return model


def every_answer(model, source, limits, penalty):
    """Score every answer by whole forwards: no cache, no search."""
    ranked = []
    for length in range(1, limits.max_new_tokens + 1):
        for ids in itertools.product(range(VOCABULARY), repeat=length):
            if END in ids[:-1] or (length < limits.max_new_tokens and ids[-1] != END):
                continue
            total = log_probability(model, source, ids)
            ranked.append((total / penalty(length), list(ids)))
    return sorted(ranked, key=lambda pair: -pair[0])


def log_probability(model, source, ids):
    with torch.no_grad():
        if model.first_token is not None:
            logits = model.logits(torch.tensor([source]), torch.tensor([[model.first_token, *ids[:-1]]]))[0]
        else:
            logits = model.logits(torch.tensor([[*source, *ids[:-1]]]))[0, len(source) - 1 :]
    return float(logits.log_softmax(-1)[torch.arange(len(ids)), torch.tensor(ids)].sum())


def test_one_beam_is_greedy(model):
    free = generate(model, PROMPTS, TOKENIZER, Limits(8, 48))
    for end in ((), {free[0].ids[3], free[2].ids[6]}):
        limits = Limits(max_new_tokens=8, context=48, end=end)
        greedy = generate(model, PROMPTS, TOKENIZER, limits)
        answers = beam_search(model, PROMPTS, limits, 1)
        assert [row[0].ids for row in answers] == [answer.ids for answer in greedy]
        assert [row[0].finish_reason for row in answers] == [answer.finish_reason for answer in greedy]


@pytest.mark.parametrize("alpha", [0, 0.6, 2])
def test_full_width_is_every_answer_counted_by_whole_forwards(small, alpha):
    limits, penalty = Limits(max_new_tokens=3, context=20, end={END}), LengthPenalty(alpha)
    expected = every_answer(small, SOURCES[0], limits, penalty)
    answers = beam_search(small, [SOURCES[0]], limits, 500, penalty=penalty, answers=500)[0]
    assert len(answers) == len(expected)
    assert torch.allclose(torch.tensor([h.score for h in answers]), torch.tensor([s for s, _ in expected]), atol=1e-9)
    assert [h.ids for h in answers[:20]] == [ids for _, ids in expected[:20]]
    assert answers == exhaustive(small, SOURCES[0], limits, penalty=penalty)


def test_answers_may_be_so_much_longer_than_their_sources(small):
    """Each source as if it were alone with that limit; the general limit still holds."""
    limits = Limits(max_new_tokens=6, context=30)
    answers = beam_search(small, SOURCES, limits, 3, answers=3, beyond_source=2)
    assert [len(row[0].ids) for row in answers] == [5, 6, 3]
    for source, row in zip(SOURCES, answers, strict=True):
        alone = beam_search(small, [source], Limits(min(6, len(source) + 2), 30), 3, answers=3)[0]
        assert [answer.ids for answer in row] == [answer.ids for answer in alone]
        assert row[0].finish_reason == "length"
    assert beam_search(small, SOURCES, limits, 3, answers=3, beyond_source=9) == beam_search(
        small, SOURCES, limits, 3, answers=3
    )


def test_a_row_alone_is_the_row_in_a_batch(small):
    limits = Limits(max_new_tokens=6, context=20, end={END})
    together = beam_search(small, SOURCES, limits, 3, answers=2)
    for source, row in zip(SOURCES, together, strict=True):
        alone = beam_search(small, [source], limits, 3, answers=2)[0]
        assert [h.ids for h in row] == [h.ids for h in alone]
        for hypothesis in row:
            assert hypothesis.log_probability == pytest.approx(log_probability(small, source, hypothesis.ids), abs=1e-9)
            assert hypothesis.score == pytest.approx(
                hypothesis.log_probability / LengthPenalty()(len(hypothesis.ids)), abs=1e-12
            )


def test_more_beams_never_settle_for_less_than_what_they_saw(small):
    limits = Limits(max_new_tokens=4, context=20, end={END})
    best = exhaustive(small, SOURCES[1], limits)[0].score
    for width in (1, 2, 4, 8):
        assert beam_search(small, [SOURCES[1]], limits, width)[0][0].score <= best + 1e-12


def test_stopping_early_changes_no_answer(small):
    """The best answer found with the bound equals the best among all that the same beams end with."""
    limits = Limits(max_new_tokens=7, context=20, end={END})
    for source in SOURCES:
        early = beam_search(small, [source], limits, 4, answers=1)[0][0]
        whole = beam_search(small, [source], limits, 4, answers=4)[0][0]
        assert early == whole


class Memoryless:
    """Gives every token the same distribution, whatever came before."""

    first_token = None

    def __init__(self, log_probabilities):
        self.logits = torch.tensor(log_probabilities, dtype=torch.float64).log_softmax(-1)

    def start(self, ids_BL, capacity, lengths_B=None):
        return self.logits.expand(len(ids_BL), -1), Rows([ids_BL.shape[1]] * len(ids_BL))

    def step(self, tokens_BN, session, lengths=None):
        session.lengths = [length + 1 for length in session.lengths]
        return self.logits.expand(len(tokens_BN), 1, -1)


class Rows:
    """A session that knows its lengths alone."""

    def __init__(self, lengths):
        self.lengths = lengths

    def select(self, rows):
        return Rows([self.lengths[row] for row in rows])


def test_a_long_answer_that_wins_late_is_waited_for():
    """Going on costs 1 a token, ending 2.13: at once -2.13, after six tokens -6 / (11/6)^2 = -1.79."""
    model, penalty = Memoryless([-1.0, -1.77, -1.77, -1.77, -2.13]), LengthPenalty(2)
    going_on, ending = float(model.logits[0]), float(model.logits[END])
    answers = beam_search(model, [[1]], Limits(max_new_tokens=6, context=20, end={END}), 5, penalty=penalty, answers=1)
    best = answers[0][0]
    assert best.ids == [0] * 6
    assert best.score == pytest.approx(6 * going_on / penalty(6))
    assert best.score > max((n * going_on + ending) / penalty(n + 1) for n in range(5))


class Constructed:
    """A tree of three levels in which the best answer begins with the second best token.

    0 has 0.5 and then 0.4 and 0.5; 1 has 0.4 and then 0.9 and 0.9; all else is shared evenly by the other tokens.
    """

    first_token = None
    likely: ClassVar = {(): {0: 0.5, 1: 0.4}, (0,): {2: 0.4}, (1,): {3: 0.9}, (0, 2): {2: 0.5}, (1, 3): {1: 0.9}}

    def start(self, ids_BL, capacity, lengths_B=None):
        return self.logits([()] * len(ids_BL)), Paths([()] * len(ids_BL))

    def step(self, tokens_BN, session, lengths=None):
        session.paths = [(*path, token) for path, token in zip(session.paths, tokens_BN[:, 0].tolist(), strict=True)]
        return self.logits(session.paths)[:, None]

    def logits(self, paths):
        p = torch.zeros(len(paths), VOCABULARY, dtype=torch.float64)
        for row, path in enumerate(paths):
            own = self.likely.get(path, {})
            p[row] = (1 - sum(own.values())) / (VOCABULARY - len(own))
            for token, value in own.items():
                p[row, token] = value
        return p.log()


class Paths:
    """A session that knows what its rows have written."""

    def __init__(self, paths):
        self.paths = paths

    @property
    def lengths(self):
        return [1 + len(path) for path in self.paths]

    def select(self, rows):
        return Paths([self.paths[row] for row in rows])


def test_greedy_loses_where_the_best_answer_begins_with_the_second_best_token():
    tree, limits = Constructed(), Limits(max_new_tokens=3, context=20)
    (greedy,) = generate(tree, [[1]], TOKENIZER, limits)
    (beams,) = beam_search(tree, [[1]], limits, 2)
    best = exhaustive(tree, [1], limits)[0]
    assert greedy.ids == [0, 2, 2]
    assert beams[0].ids == best.ids == [1, 3, 1]
    assert math.exp(best.log_probability) == pytest.approx(0.4 * 0.9 * 0.9)
    assert best.log_probability > math.log(0.5 * 0.4 * 0.5)
    assert beam_search(tree, [[1]], limits, 1)[0][0].ids == greedy.ids


def test_reorder_of_a_state_is_the_other_row_going_on(small):
    ids, rows = torch.tensor([[1, 2, 3], [3, 0, 2], [2, 2, 1]]), torch.tensor([2, 0, 0])
    _, session = small.start(ids, 12)
    session = session.reorder(rows)
    again = small.step(torch.tensor([[1], [2], [3]]), session)
    for place, (row, token) in enumerate(zip(rows.tolist(), [1, 2, 3], strict=True)):
        _, alone = small.start(ids[row : row + 1], 12)
        expected = small.step(torch.tensor([[token]]), alone)
        assert torch.allclose(again[place], expected[0], atol=1e-9)


def test_the_length_penalty_is_the_papers():
    assert LengthPenalty(0.6)(1) == 1
    assert LengthPenalty(0.6)(7) == pytest.approx(2**0.6)
    assert LengthPenalty(0)(50) == 1


def test_ids_that_the_tokenizer_lacks_are_never_found(small):
    answers = beam_search(small, SOURCES, Limits(5, 20), 3, vocabulary=3)
    assert all(id < 3 for row in answers for id in row[0].ids)


def test_what_cannot_be_searched(small):
    limits = Limits(max_new_tokens=4, context=20)
    with pytest.raises(UsageError, match="at least 1"):
        beam_search(small, SOURCES, limits, 0)
    with pytest.raises(UsageError, match="length_penalty"):
        LengthPenalty(-1)
    with pytest.raises(UsageError, match="too many"):
        exhaustive(small, SOURCES[0], Limits(20, 40))
    with pytest.raises(UsageError, match="temperature, stop cannot"):
        refuse_with_beams(temperature=0.5, top_k=None, stop=["x"])

    class Broken:
        first_token = None

        def start(self, *call):
            logits, session = small.start(*call)
            return logits * float("nan"), session

        def step(self, *call):
            return small.step(*call)

    with pytest.raises(RunError, match="NaN"):
        beam_search(Broken(), SOURCES, limits, 2)
