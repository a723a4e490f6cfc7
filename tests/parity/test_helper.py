"""The parity helpers themselves: they must fail on a model with one broken line."""

import pytest
import torch

from orrery.nn.attention import multihead
from orrery.nn.embeddings import TokenTypeEmbedding
from orrery.nn.heads import Pooler
from orrery.nn.masks import Full
from orrery.nn.positions import rotary
from tests.parity.encoders import assert_encoder_parity
from tests.parity.helper import assert_parity
from tests.parity.test_llama import TINY as LLAMA
from tests.parity.test_plain_decoders import OPENAI as GPT2
from tests.parity.test_plain_encoders import BERT


def swapped_halves(x, cosine, sine):
    a, b = x.chunk(2, dim=-1)
    return torch.cat([a * cosine + b * sine, b * cosine - a * sine], dim=-1)


def test_notices_a_rotation_the_wrong_way(monkeypatch):
    monkeypatch.setattr(rotary, "_rotate_halves", swapped_halves)
    with pytest.raises(AssertionError, match=r"first at blocks\.0\.attention\.added"):
        assert_parity("llama", 1e-9, **LLAMA)


def test_notices_a_missing_scale(monkeypatch):
    build = multihead.MultiHeadAttention.__init__

    def unscaled(self, spec, width):
        build(self, spec, width)
        self.scale = 1.0

    monkeypatch.setattr(multihead.MultiHeadAttention, "__init__", unscaled)
    with pytest.raises(AssertionError, match=r"first at blocks\.0\.attention\.added"):
        assert_parity("gpt2", 1e-9, **GPT2)


@pytest.mark.parametrize(
    ("theirs", "other", "first"),
    [
        ("transformer.h.1.ln_1.bias", "transformer.h.1.ln_2.bias", r"blocks\.1\.attention\.added"),
        ("transformer.h.0.ln_2.weight", "transformer.h.1.ln_2.weight", r"blocks\.0\.feed_forward\.added"),
        ("transformer.ln_f.bias", "transformer.h.0.ln_1.bias", r"blocks\.0\.attention\.added"),
    ],
)
def test_notices_a_swapped_tensor(monkeypatch, theirs, other, first):
    from tests.parity import helper

    right = helper.to_ours

    def swapped(tensors, rules, shapes):
        return right({**tensors, theirs: tensors[other], other: tensors[theirs]}, rules, shapes)

    monkeypatch.setattr(helper, "to_ours", swapped)
    with pytest.raises(AssertionError, match=f"first at {first}"):
        assert_parity("gpt2", 1e-9, **GPT2)


def test_notices_lost_token_types(monkeypatch):
    monkeypatch.setattr(TokenTypeEmbedding, "forward", lambda self, ids, token_types=None: self.token(ids))
    with pytest.raises(AssertionError, match="first at embedded"):
        assert_encoder_parity("bert", 1e-9, **BERT)


def test_notices_a_second_head_that_is_wrong(monkeypatch):
    monkeypatch.setattr(Pooler, "forward", lambda self, x, real=None: self.transform(x[:, -1]))
    with pytest.raises(AssertionError, match="seq_relationship_logits differs"):
        assert_encoder_parity("bert", 1e-9, auto="BertForPreTraining", **BERT)


def test_notices_padding_that_is_read(monkeypatch):
    seen = torch.ones(1, 1, 1, 1, dtype=torch.bool)
    monkeypatch.setattr(Full, "allows", lambda self, query, key: seen[0].expand(3, 14, 14))
    with pytest.raises(AssertionError, match="right padding"):
        assert_encoder_parity("bert", 1e-9, **BERT)
