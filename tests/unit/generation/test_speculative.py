import pytest
import torch

from orrery.errors import UsageError
from orrery.generation.drafts import DraftModel, PromptLookup
from orrery.generation.generate import generate
from orrery.generation.row import Limits
from orrery.generation.samplers import GREEDY, sampler
from orrery.generation.speculative import speculate
from tiny_models import TOKENIZER, smallest

PROMPT = [5, 9, 31, 5, 9, 31, 5]
FAMILIES = ["gpt2", "llama", "bloom", "gemma2", "deepseek_v2", "t5", "bart", "lstm", "mistral", "rnnsearch"]
"""Growing and sliding windows, latent keys, encoder-decoders, and recurrences, which cannot go back."""


DRAWN = sampler(temperature=0.9, top_p=0.95, frequency_penalty=0.3)


def draft_of(kind, model, context):
    if kind == "lookup":
        return PromptLookup()
    return DraftModel(model if kind == "itself" else smallest(kind, seed=5), context)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("kind", ["lookup", "itself", "other"])
@pytest.mark.parametrize(
    "chosen", [GREEDY, sampler(temperature=0.9, top_p=0.95, frequency_penalty=0.3)], ids=["greedy", "drawn"]
)
def test_guesses_change_no_token(family, kind, chosen):
    model = smallest(family)
    limits = Limits(12, min(24, model.spec.context))
    draft = draft_of(family if kind == "other" else kind, model, limits.context)
    found = speculate(model, PROMPT, TOKENIZER, limits, draft, sampler=chosen, seed=3, count=4)
    plain = generate(model, [PROMPT], TOKENIZER, limits, sampler=chosen, seed=3)[0]
    assert (found.answer.ids, found.answer.text) == (plain.ids, plain.text)
    assert found.answer.finish_reason == plain.finish_reason
    assert found.accepted <= found.proposed
    assert found.steps <= len(plain.ids)
    if kind == "itself":
        assert found.accepted == found.proposed > 0
        assert found.steps <= 1 + -(-len(plain.ids) // 5)


def test_a_draft_whose_context_is_full_guesses_no_more():
    model = smallest("llama")
    limits = Limits(30, 40)
    found = speculate(model, PROMPT, TOKENIZER, limits, DraftModel(smallest("llama"), 12), count=4)
    plain = generate(model, [PROMPT], TOKENIZER, limits)[0]
    assert found.answer.ids == plain.ids
    assert 0 < found.accepted == found.proposed <= 6
    short = speculate(model, PROMPT, TOKENIZER, limits, DraftModel(smallest("llama"), 3), count=4)
    assert (short.answer.ids, short.proposed) == (plain.ids, 0)


def test_one_draft_serves_one_prompt_after_another():
    model, draft = smallest("gpt2"), DraftModel(smallest("gpt2", seed=5), 24)
    limits = Limits(8, 24)
    for prompt in (PROMPT, [7, 7], PROMPT):
        found = speculate(model, prompt, TOKENIZER, limits, draft)
        assert found.answer.ids == generate(model, [prompt], TOKENIZER, limits)[0].ids


def test_what_repeats_is_looked_up():
    look = PromptLookup(longest=2)
    rng = torch.Generator()
    assert look.propose([1, 2, 3, 4, 1], [2], 2, GREEDY, rng) == [3, 4]
    assert look.propose([1, 2, 3, 1, 2, 9, 5], [1, 2], 3, GREEDY, rng) == [9, 5, 1]  # the newest place
    assert look.propose([1, 2, 3], [9], 3, GREEDY, rng) == []


@pytest.mark.parametrize(
    "wrong",
    [
        lambda m: speculate(m, PROMPT, TOKENIZER, Limits(3, 24), PromptLookup(), count=0),
        lambda m: speculate(m, [], TOKENIZER, Limits(3, 24), PromptLookup()),
        lambda m: PromptLookup(0),
    ],
)
def test_what_cannot_be_guessed_is_refused(wrong):
    with pytest.raises(UsageError):
        wrong(smallest("gpt2"))
