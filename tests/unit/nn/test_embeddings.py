"""Embeddings and the head: look-ups, tying, ids out of range."""

import math

import pytest
import torch

from orrery.errors import DataError, UsageError
from orrery.families import load_family
from orrery.laws.models import CONFIGS, random_ids
from orrery.nn.embeddings import TokenEmbedding, check_ids
from orrery.nn.heads import LanguageModelHead
from orrery.nn.residual import Scale


def test_a_look_up_is_the_one_hot_product_bit_for_bit():
    embedding = TokenEmbedding.Spec(vocabulary=61).build(24)
    ids = random_ids(3, 7)
    one_hot = torch.nn.functional.one_hot(ids, 61).float()
    looked_up, product = embedding(ids), one_hot @ embedding.token.weight
    assert torch.equal(looked_up.view(torch.int32), product.view(torch.int32))


def test_one_hot_vectors_are_orthogonal_and_equally_far_apart():
    e = torch.eye(50, dtype=torch.float64)
    apart = ~torch.eye(50, dtype=torch.bool)
    assert torch.equal((e @ e.T)[apart], torch.zeros(50 * 49).double())
    distance = (e[:, None] - e[None]).norm(dim=-1)[apart]
    assert (distance - math.sqrt(2)).abs().max() == 0


@pytest.mark.parametrize("bad", [-1, 61])
def test_ids_outside_the_vocabulary_are_named(bad):
    with pytest.raises(DataError, match=f"{bad} is outside the vocabulary of 61"):
        check_ids(torch.tensor([[0, 60], [bad, 3]]), 61)
    check_ids(torch.tensor([[0, 60]]), 61)


def test_tied_is_one_storage_and_both_gradients_add():
    tied = load_family("gpt2").spec(CONFIGS["gpt2"]).build(0).double().eval()
    untied = load_family("gpt2").spec({**CONFIGS["gpt2"], "tie_word_embeddings": False}).build(0).double().eval()
    untied.load_state_dict(tied.state_dict())
    ids = random_ids(2, 6)
    for model in (tied, untied):
        model.logits(ids).pow(2).mean().backward()
    assert tied.embed.token.weight is tied.head.vocabulary.weight
    both = untied.embed.token.weight.grad + untied.head.vocabulary.weight.grad
    torch.testing.assert_close(tied.embed.token.weight.grad, both, rtol=0, atol=1e-15)


def test_logits_are_the_stream_times_the_table():
    head = LanguageModelHead.Spec(vocabulary=11, tied=False, transform=Scale.Spec(factor=2.0)).build(6)
    h = torch.randn(2, 3, 6)
    torch.testing.assert_close(head(h), 2 * h @ head.vocabulary.weight.T)


def test_a_tied_head_of_another_width_is_refused():
    from dataclasses import replace

    from orrery.nn.positions.onehot import OneHotPositions

    spec = load_family("gpt2").spec(CONFIGS["gpt2"])
    stack = replace(spec.stack, positions={"onehot": OneHotPositions.Spec(length=8)})
    with pytest.raises(UsageError, match="tied head"):
        replace(spec, stack=stack).build(0)
