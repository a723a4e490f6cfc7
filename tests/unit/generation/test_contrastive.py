import pytest
import torch

from orrery.errors import UsageError
from orrery.generation.contrastive import contrastive_search
from orrery.generation.generate import generate
from orrery.generation.row import Limits
from tiny_models import TOKENIZER, smallest

PROMPT = [5, 9, 31]


def by_the_formula(model, prompt, tokens, k, alpha):
    """Whole forwards, one for each candidate."""
    row, seen = list(prompt), {}

    def keep(key, value):
        seen[key] = value
        return value

    def read(ids):
        with torch.no_grad():
            logits = model.logits(torch.tensor([ids]), taps=keep)
        return logits[0, -1], torch.nn.functional.normalize(seen["final"][0], dim=-1)

    for _ in range(tokens):
        p, ids = read(row)[0].softmax(-1).topk(k)
        scores = []
        for value, token in zip(p.tolist(), ids.tolist(), strict=True):
            h = read([*row, token])[1]
            scores.append((1 - alpha) * value - alpha * float((h[:-1] @ h[-1]).max()))
        row.append(int(ids[scores.index(max(scores))]))
    return row[len(prompt) :]


@pytest.mark.parametrize("family", ["gpt2", "llama", "gemma2", "lstm"])
@pytest.mark.parametrize(("k", "alpha"), [(4, 0.6), (3, 0.9), (6, 0.1)])
def test_each_token_is_that_of_the_formula(family, k, alpha):
    model = smallest(family)
    answer = contrastive_search(model, PROMPT, TOKENIZER, Limits(6, 24), top_k=k, alpha=alpha)
    assert answer.ids == by_the_formula(model, PROMPT, 6, k, alpha)


@pytest.mark.parametrize("family", ["gpt2", "t5", "rnnsearch"])
def test_without_a_penalty_it_is_greedy_up_to_the_end_of_the_context(family):
    model, limits = smallest(family), Limits(50, 12)
    answer = contrastive_search(model, PROMPT, TOKENIZER, limits, alpha=0.0)
    plain = generate(model, [PROMPT], TOKENIZER, limits)[0]
    assert (answer.ids, answer.finish_reason) == (plain.ids, "context")


@pytest.mark.parametrize("setting", [{"top_k": 0}, {"alpha": -0.1}, {"alpha": 1.5}], ids=str)
def test_settings_outside_their_range_are_refused(setting):
    with pytest.raises(UsageError, match="not possible"):
        contrastive_search(smallest("gpt2"), PROMPT, TOKENIZER, Limits(2, 24), **setting)
