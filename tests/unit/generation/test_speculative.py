from collections import Counter

import pytest
import torch

from orrery.errors import UsageError
from orrery.generation.drafts import DraftModel, Guess, PromptLookup
from orrery.generation.filters import History
from orrery.generation.generate import generate
from orrery.generation.reading import DraftSession
from orrery.generation.row import Limits
from orrery.generation.samplers import GREEDY, sampler
from orrery.generation.speculative import judged, speculate
from tiny_models import TOKENIZER, smallest

PROMPT = [5, 9, 31, 5, 9, 31, 5]
FAMILIES = ["gpt2", "llama", "bloom", "gemma2", "deepseek_v2", "t5", "bart", "lstm", "mistral", "rnnsearch"]
"""Growing and sliding windows, latent keys, encoder-decoders, and recurrences, which cannot go back."""


DRAWN = sampler(temperature=0.9, top_p=0.95, frequency_penalty=0.3)


WAYS = [("lookup", GREEDY), ("lookup", DRAWN), ("other", GREEDY)]


def draft_of(kind, model, context):
    if kind == "lookup":
        return PromptLookup()
    return DraftModel(model if kind == "itself" else smallest(kind, seed=5), context)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(
    ("kind", "chosen"),
    [("lookup", GREEDY), ("lookup", DRAWN), ("other", GREEDY)],
    ids=["lookup", "lookup drawn", "other"],
)
def test_guesses_that_are_not_drawn_change_no_token(family, kind, chosen):
    model = smallest(family)
    limits = Limits(12, min(24, model.spec.context))
    draft = draft_of(family if kind == "other" else kind, model, limits.context)
    speculated = speculate(model, PROMPT, TOKENIZER, limits, draft, sampler=chosen, seed=3, count=4)
    plain = generate(model, [PROMPT], TOKENIZER, limits, sampler=chosen, seed=3)[0]
    assert (speculated.answer.ids, speculated.answer.text) == (plain.ids, plain.text)
    assert speculated.answer.finish_reason == plain.finish_reason
    assert speculated.accepted <= speculated.proposed
    assert speculated.steps <= len(plain.ids)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("chosen", [GREEDY, DRAWN], ids=["greedy", "drawn"])
def test_every_guess_of_the_model_itself_holds(family, chosen):
    model = smallest(family)
    limits = Limits(12, min(24, model.spec.context))
    speculated = speculate(model, PROMPT, TOKENIZER, limits, DraftModel(model, limits.context), sampler=chosen, count=4)
    assert speculated.accepted == speculated.proposed > 0
    assert speculated.steps <= 1 + -(-len(speculated.answer.ids) // 5)


@pytest.mark.parametrize("family", ["llama", "lstm"])
def test_answers_have_the_probabilities_of_the_model(family):
    model, other = smallest(family), smallest(family, seed=5)
    chosen, limits = sampler(temperature=1.0, top_k=2), Limits(2, 24)
    draft, counts = DraftModel(other, 24), Counter()
    runs = 200
    for seed in range(runs):
        counts[tuple(speculate(model, PROMPT, TOKENIZER, limits, draft, sampler=chosen, seed=seed).answer.ids)] += 1
    with torch.no_grad():
        expected = dict(paths(model, chosen, 2))
    assert set(counts) <= set(expected)
    square = sum((counts[path] - runs * p) ** 2 / (runs * p) for path, p in expected.items())
    assert square < 16.3  # three degrees of freedom, p = 0.001


def paths(model, chosen, length, answer=()):
    """Yield every answer with its probability, by reading it from the beginning."""
    if len(answer) == length:
        yield answer, 1.0
        return
    reading = DraftSession(model, PROMPT, 24)
    logits_V = reading.read(list(answer))[-1] if answer else reading.first_V
    p_V = chosen.filtered(logits_V[None], History.of([[]], logits_V[None]))[0].softmax(-1)
    for token in p_V.nonzero()[:, 0].tolist():
        for path, p in paths(model, chosen, length, (*answer, token)):
            yield path, float(p_V[token]) * p


@pytest.mark.parametrize("wider", [-2, 0, 3])
def test_a_guess_is_accepted_as_often_as_it_can_be(wider):
    rng = torch.Generator().manual_seed(1)
    p_V = torch.randn(8, dtype=torch.float64, generator=rng).softmax(-1)
    q_V = torch.randn(8 + wider, dtype=torch.float64, generator=rng).softmax(-1)
    counts, accepted, runs = torch.zeros(8), 0, 4_000
    for token in torch.multinomial(q_V, runs, replacement=True, generator=rng).tolist():
        token_kept, held = judged(p_V.log()[None], Guess(token, q_V), DRAWN, rng)
        assert held == (token_kept == token) or not held
        counts[token_kept] += 1
        accepted += held
    square = float(((counts - runs * p_V) ** 2 / (runs * p_V)).sum())
    assert square < 24.3  # seven degrees of freedom, p = 0.001
    width = min(8, 8 + wider)
    most = float(torch.minimum(p_V[:width], q_V[:width]).sum())
    assert abs(accepted / runs - most) < 4 * (most * (1 - most) / runs) ** 0.5


def test_a_draft_whose_context_is_full_guesses_no_more():
    model = smallest("llama")
    limits = Limits(30, 40)
    speculated = speculate(model, PROMPT, TOKENIZER, limits, DraftModel(smallest("llama"), 12), count=4)
    plain = generate(model, [PROMPT], TOKENIZER, limits)[0]
    assert speculated.answer.ids == plain.ids
    assert 0 < speculated.accepted == speculated.proposed <= 6
    short = speculate(model, PROMPT, TOKENIZER, limits, DraftModel(smallest("llama"), 3), count=4)
    assert (short.answer.ids, short.proposed) == (plain.ids, 0)


@pytest.mark.parametrize("family", ["gpt2", "lstm", "mistral"])
def test_one_draft_serves_one_prompt_after_another_and_one_answer_after_another(family):
    model, draft = smallest(family), DraftModel(smallest(family, seed=5), 24)
    limits = Limits(8, 24)
    for seed, prompt in enumerate((PROMPT, [7, 7], PROMPT, PROMPT, PROMPT)):
        speculated = speculate(model, prompt, TOKENIZER, limits, draft, sampler=DRAWN, seed=seed)
        alone = DraftModel(smallest(family, seed=5), 24)
        fresh = speculate(model, prompt, TOKENIZER, limits, alone, sampler=DRAWN, seed=seed)
        assert speculated.answer.ids == fresh.answer.ids
        assert (speculated.steps, speculated.proposed, speculated.accepted) == (
            fresh.steps,
            fresh.proposed,
            fresh.accepted,
        )


def test_what_repeats_is_looked_up():
    look = PromptLookup(longest=2)
    rng = torch.Generator()
    assert look.propose([1, 2, 3, 4, 1], [2], 2, GREEDY, rng) == [Guess(3), Guess(4)]
    newest = look.propose([1, 2, 3, 1, 2, 9, 5], [1, 2], 3, GREEDY, rng)
    assert [guess.token for guess in newest] == [9, 5, 1]
    assert look.propose([1, 2, 3], [9], 3, GREEDY, rng) == []


@pytest.mark.parametrize(
    ("wrong", "says", "hint"),
    [
        (lambda m: speculate(m, PROMPT, TOKENIZER, Limits(3, 24), PromptLookup(), count=0), "0 guesses", "at least 1"),
        (lambda m: speculate(m, [], TOKENIZER, Limits(3, 24), PromptLookup()), "prompt 0 is empty", "give it a token"),
        (lambda m: PromptLookup(0), "a run of 0 tokens", "at least 1"),
    ],
)
def test_what_cannot_be_guessed_is_refused(wrong, says, hint):
    with pytest.raises(UsageError, match=says) as error:
        wrong(smallest("gpt2"))
    assert hint in error.value.hint


def test_one_guess_a_step_is_enough():
    model, limits = smallest("gpt2"), Limits(9, 24)
    speculated = speculate(model, PROMPT, TOKENIZER, limits, DraftModel(model, limits.context), count=1)
    assert speculated.answer.ids == generate(model, [PROMPT], TOKENIZER, limits)[0].ids
    assert speculated.accepted == speculated.proposed == len(speculated.answer.ids) // 2
