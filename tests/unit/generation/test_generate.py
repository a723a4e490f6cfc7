from dataclasses import dataclass

import pytest
import torch

from orrery.errors import RunError, UsageError
from orrery.families import load_family
from orrery.generation.generate import generate
from orrery.generation.row import Limits
from orrery.generation.samplers import sampler
from tiny_models import TOKENIZER, randomised, tiny

PROMPTS = [[5, 9, 200, 31], [7], [8, 8, 120, 14, 250, 3, 77], [40, 41]]
LIMITS = Limits(max_new_tokens=8, context=48)


def ids(answers):
    return [answer.ids for answer in answers]


@pytest.fixture(scope="module", params=["gpt2", "llama"])
def model(request):
    return tiny(request.param, torch.float32)


def full_greedy(model, prompt, tokens):
    """Greedy decoding by whole forwards, without a cache."""
    row = list(prompt)
    with torch.no_grad():
        for _ in range(tokens):
            row.append(int(model.logits(torch.tensor([row]))[0, -1].argmax()))
    return row[len(prompt) :]


def test_cached_greedy_equals_full_forwards(model):
    answers = generate(model, PROMPTS, TOKENIZER, LIMITS)
    assert ids(answers) == [full_greedy(model, prompt, 8) for prompt in PROMPTS]
    assert {answer.finish_reason for answer in answers} == {"length"}


@pytest.mark.parametrize("settings", [{}, {"temperature": 1.2, "top_p": 0.9, "repetition_penalty": 1.2}], ids=str)
def test_alone_equals_in_a_batch_from_which_rows_drop_out(model, settings):
    chosen = sampler(**settings)
    free = generate(model, PROMPTS, TOKENIZER, LIMITS, sampler=chosen, seed=3)
    limits = Limits(8, 48, end={free[0].ids[3], free[2].ids[7]})
    together = generate(model, PROMPTS, TOKENIZER, limits, sampler=chosen, seed=3)
    alone = [
        generate(model, [prompt], TOKENIZER, limits, sampler=chosen, seed=3 + row)[0]
        for row, prompt in enumerate(PROMPTS)
    ]
    assert ids(together) == ids(alone)
    assert together[0].finish_reason == "end"
    assert len(together[0].ids) <= 4


def test_the_streamed_pieces_are_the_text_and_the_text_is_the_ids(model):
    shown = [""] * len(PROMPTS)

    def show(row, piece):
        shown[row] += piece

    answers = generate(model, PROMPTS, TOKENIZER, LIMITS, sampler=sampler(temperature=1.5), seed=1, show=show)
    assert shown == [answer.text for answer in answers] == [TOKENIZER.decode(answer.ids) for answer in answers]


def test_the_same_seed_gives_the_same_text_and_another_one_another(model):
    def run(seed):
        return ids(generate(model, PROMPTS[:1] * 2, TOKENIZER, LIMITS, sampler=sampler(temperature=1.0), seed=seed))

    assert run(5) == run(5)
    assert run(5)[0] != run(5)[1]
    assert run([5, 5])[0] == run([5, 5])[1] == run(5)[0]


@pytest.mark.parametrize(("family", "config"), [("bart", {}), ("marian", {"decoder_vocab_size": 40})], ids=str)
def test_the_penalty_counts_the_row_of_an_encoder_decoder_and_not_its_source(family, config):
    rules = load_family(family)
    model = randomised(rules.spec({**rules.TINY, **config}).build().eval())
    sources = [list(range(20, 60)), [60], [50, 20, 31]]  # Marian's source has ids that its target lacks
    answers = generate(model, sources, TOKENIZER, LIMITS, sampler=sampler(repetition_penalty=3.0))
    for source, answer in zip(sources, answers, strict=True):
        row = [model.first_token]
        for _ in range(8):
            with torch.no_grad():
                logits_V = model.logits(torch.tensor([source]), torch.tensor([row]))[0, -1]
            for token in set(row):
                logits_V[token] *= 3.0 if logits_V[token] < 0 else 1 / 3.0
            row.append(int(logits_V.argmax()))
        assert answer.ids == row[1:]
    plain = generate(model, sources, TOKENIZER, LIMITS)
    assert ids(plain) != ids(answers)


def test_a_stop_string_ends_the_answer_before_it(model):
    full = generate(model, PROMPTS[:1], TOKENIZER, LIMITS)[0]
    stop = full.text[3:6]
    answer = generate(model, PROMPTS[:1], TOKENIZER, Limits(8, 48, stop=[stop]))[0]
    assert (answer.text, answer.finish_reason) == (full.text[: full.text.find(stop)], "stop")
    assert answer.ids == full.ids[: len(answer.ids)]


def test_an_answer_ends_where_the_context_is_full(model):
    answers = generate(model, PROMPTS, TOKENIZER, Limits(100, 10))
    assert [len(p) + len(a.ids) for p, a in zip(PROMPTS, answers, strict=True)] == [11] * 4
    assert {answer.finish_reason for answer in answers} == {"context"}
    assert answers[2].ids == full_greedy(model, PROMPTS[2], 4)


@dataclass
class Chain:
    """A Markov chain as a decoding model, and its own session."""

    table: torch.Tensor
    first_token = None

    def start(self, source, capacity, lengths=None):
        self.lengths = [1] * len(source)
        return self.table[source[:, -1]].log(), self

    def step(self, tokens, session, lengths=None):
        return self.table[tokens].log()

    def select(self, rows):
        return self


def test_sampled_paths_have_their_exact_probabilities():
    table = torch.tensor([[0.5, 0.3, 0.2], [0.1, 0.6, 0.3], [0.25, 0.25, 0.5]], dtype=torch.float64)
    rows = 6000
    answers = generate(Chain(table), [[0]] * rows, TOKENIZER, Limits(3, 9), sampler=sampler(temperature=1.0))
    counts = torch.zeros(27, dtype=torch.float64)
    for answer in answers:
        a, b, c = answer.ids
        counts[9 * a + 3 * b + c] += 1
    first, later = table[0, :, None, None] * table[:, :, None], table[None]
    expected = (first * later).flatten() * rows
    assert float(((counts - expected) ** 2 / expected).sum()) < 54.1  # chi-square, 26 degrees of freedom, p = 0.001


@pytest.mark.parametrize(
    ("prompts", "limits", "seed", "says"),
    [
        ([[1] * 49], LIMITS, 0, "49 tokens .* context of 48"),
        ([[1], []], LIMITS, 0, "prompt 1 is empty"),
        ([], LIMITS, 0, "no prompts"),
        ([[1]], Limits(0, 48), 0, "max_new_tokens = 0"),
        ([[1]], LIMITS, [1, 2], "2 seeds for 1 prompts"),
    ],
)
def test_impossible_calls_are_refused(prompts, limits, seed, says):
    with pytest.raises(UsageError, match=says):
        generate(Chain(torch.eye(3)), prompts, TOKENIZER, limits, seed=seed)


def test_logits_that_are_no_numbers_are_refused():
    with pytest.raises(RunError, match="NaN"):
        generate(Chain(torch.full((3, 3), float("nan"))), [[1]], TOKENIZER, LIMITS)
