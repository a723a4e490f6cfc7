"""Pruning: the smaller model computes what the whole one does with these heads set to zero."""

import pytest
import torch

from orrery.errors import UsageError
from orrery.inspection.pruning import prune, without_heads
from orrery.inspection.trace import trace
from tiny_models import inputs_for, smallest, tiny


def zeroed(model, heads, inputs):
    def edit(value, key):
        value = value.clone()
        value[:, heads[key.removesuffix(".mixed")]] = 0
        return value

    return trace(model, *inputs, edit={f"{place}.mixed": edit for place in heads}).logits


CASES = [
    ("gpt2", {"blocks.0.attention": [1], "blocks.1.attention": [0, 2, 3]}),
    ("llama", {"blocks.1.attention": [0, 1]}),  # a whole group
    ("llama", {"blocks.0.attention": [1, 2]}),  # one of each group
    ("bert", {"blocks.1.attention": [3]}),
]


@pytest.mark.parametrize(("family", "heads"), CASES)
def test_it_is_the_model_with_these_heads_at_zero(family: str, heads) -> None:
    model = smallest(family) if family == "bert" else tiny(family)
    if family == "bert":
        heads = {"blocks.1.attention": [0]}
    inputs = inputs_for(model)
    pruned = prune(model, heads, lambda one: float(one.logits(*inputs).sum()))
    torch.testing.assert_close(pruned.model.logits(*inputs), zeroed(model, heads, inputs), rtol=0, atol=1e-9)
    assert (pruned.model.logits(*inputs) - model.logits(*inputs)).abs().max() > 1e-3
    sizes = [sum(one.numel() for one in each.parameters()) for each in (model, pruned.model)]
    assert pruned.removed == sizes[0] - sizes[1] > 0
    assert pruned.before == pytest.approx(float(model.logits(*inputs).detach().sum()))
    assert pruned.after == pytest.approx(float(pruned.model.logits(*inputs).detach().sum()))


def test_it_writes_token_by_token_as_at_once() -> None:
    model = without_heads(tiny("llama"), {"blocks.0.attention": [0, 1]})
    (ids,) = inputs_for(model)
    logits, session = model.start(ids[:, :3], 7)
    stepped = [logits]
    for place in range(3, 6):
        stepped.append(model.step(ids[:, place : place + 1], session)[:, -1])
    torch.testing.assert_close(torch.stack(stepped, 1), model.logits(ids)[:, 2:6], rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    ("family", "heads", "why"),
    [
        ("gpt2", {"blocks.0.attention": [4]}, "head 4 is to go"),
        ("gpt2", {"blocks.5.attention": [0]}, "there is no attention"),
        ("gpt2", {"blocks.0.attention": [0, 1, 2, 3]}, "without a head"),
        ("llama", {"blocks.0.attention": [0]}, "unevenly"),
    ],
)
def test_what_cannot_be_removed_is_refused(family: str, heads, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        without_heads(tiny(family), heads)


def test_positions_with_numbers_by_head_are_refused() -> None:
    with pytest.raises(UsageError, match="numbers for each head"):
        without_heads(smallest("bloom"), {"blocks.0.attention": [0]})
