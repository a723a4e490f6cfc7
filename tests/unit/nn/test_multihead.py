"""Multi-head attention against torch's, and its refusals."""

from dataclasses import replace

import pytest
import torch

from orrery.errors import UsageError
from orrery.nn.attention.kernels import eager, sdpa
from orrery.nn.attention.multihead import Biases, MultiHeadAttention, ScoreSettings, Sinks
from orrery.nn.attention.output_gate import OutputGate
from orrery.nn.attention.sources import CrossSource, SelfSource
from orrery.nn.cache.contract import UNCACHED, Layer
from orrery.nn.context import Context
from orrery.nn.elementwise import Clamp
from orrery.nn.masks import PLAIN_CAUSAL, BoundMask
from orrery.nn.norms import HeadNorm, RMSNorm
from orrery.nn.positions.scheme import NO_POSITION

X = torch.randn(2, 7, 12, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


def context(kernel=eager, mask=PLAIN_CAUSAL):
    return Context(
        positions={"none": NO_POSITION},
        masks={"causal": mask},
        cache=UNCACHED,
        kernel=kernel,
        layer=Layer(0, "blocks.0", UNCACHED),
    )


@pytest.mark.parametrize("causal", [True, False])
def test_equals_torch(causal):
    ours = MultiHeadAttention.Spec(
        heads=3, kv_heads=3, head_width=4, biases=Biases(q=True, k=True, v=True, out=True)
    ).build(12)
    ours = ours.double()
    theirs = torch.nn.MultiheadAttention(12, 3, batch_first=True, dtype=torch.float64)
    with torch.no_grad():
        theirs.in_proj_weight.copy_(torch.cat([x.weight for x in (ours.q, ours.k, ours.v)]))
        theirs.in_proj_bias.copy_(torch.cat([x.bias for x in (ours.q, ours.k, ours.v)]))
        theirs.out_proj.load_state_dict(ours.out.state_dict())
    later = torch.ones(7, 7, dtype=torch.bool).triu(1) & causal
    expected, _ = theirs(X, X, X, attn_mask=later, need_weights=False)
    mask = BoundMask(dense=~later[None, None], is_causal=False)
    for kernel in (eager, sdpa):
        torch.testing.assert_close(ours(X, context(kernel, mask)), expected, rtol=0, atol=1e-12)


def test_grouped_heads_are_full_heads_with_repeated_keys_and_values():
    grouped = MultiHeadAttention.Spec(heads=6, kv_heads=2, head_width=4).build(12).double()
    full = MultiHeadAttention.Spec(heads=6, kv_heads=6, head_width=4).build(12).double()
    state = grouped.state_dict()
    for name in ("k.weight", "v.weight"):
        state[name] = state[name].unflatten(0, (2, 4)).repeat_interleave(3, dim=0).flatten(0, 1)
    full.load_state_dict(state)
    torch.testing.assert_close(grouped(X, context()), full(X, context()), rtol=0, atol=1e-12)


def test_head_norm_and_scale():
    spec = MultiHeadAttention.Spec(
        heads=3,
        kv_heads=3,
        head_width=4,
        scoring=ScoreSettings(scale=2.0),
        qk_norm=HeadNorm.Spec(norm=RMSNorm.Spec(eps=0.0), head_width=4),
    )
    attention = spec.build(12).double()
    q, k, v = (attention.split(layer(X)) for layer in (attention.q, attention.k, attention.v))
    q, k = (x / x.pow(2).mean(-1, keepdim=True).sqrt() for x in (q, k))
    scores = (2.0 * q @ k.mT).masked_fill(torch.ones(7, 7, dtype=torch.bool).triu(1), float("-inf"))
    expected = attention.out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))
    torch.testing.assert_close(attention(X, context()), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kernel", [eager, sdpa])
def test_a_sink_of_its_own_for_every_head(kernel):
    plain = MultiHeadAttention.Spec(heads=3, kv_heads=3, head_width=4).build(12).double()
    with_sinks = MultiHeadAttention.Spec(heads=3, kv_heads=3, head_width=4, sinks=Sinks.Spec()).build(12).double()
    with_sinks.load_state_dict({**plain.state_dict(), "sinks.weight": torch.tensor([-1e9, 1e9, -1e9])})
    mixed = {}

    def record(key, value):
        mixed[key] = value
        return value

    plain(X, replace(context(kernel), taps=record))
    expected = mixed["blocks.0.mixed"].clone()
    with_sinks(X, replace(context(kernel), taps=record))
    expected[:, 1] = 0  # the second head gives everything to nothing
    torch.testing.assert_close(mixed["blocks.0.mixed"], expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kernel", [eager, sdpa])
def test_a_gate_lets_through_a_share_of_every_channel(kernel):
    spec = MultiHeadAttention.Spec(heads=3, kv_heads=3, head_width=4)
    plain, gated = spec.build(12).double(), OutputGate.Spec(attention=spec, bias=True).build(12).double()
    gated.load_state_dict(plain.state_dict(), strict=False)
    seen = {}

    def record(key, value):
        seen[key] = value
        return value

    plain(X, replace(context(kernel), taps=record))
    mixed_BLE = seen["blocks.0.mixed"].transpose(1, 2).flatten(2)
    out = gated(X, replace(context(kernel), taps=record))
    expected = gated.out(torch.sigmoid(X @ gated.gate.linear.weight.T + gated.gate.linear.bias) * mixed_BLE)
    torch.testing.assert_close(out, expected, rtol=0, atol=1e-12)
    assert seen["blocks.0.gate"].shape == seen["blocks.0.mixed"].shape


def test_clipped_queries_keys_and_values():
    clip = Clamp.Spec(bound=0.2)
    spec = MultiHeadAttention.Spec(heads=3, kv_heads=3, head_width=4, qk_norm=clip, source=SelfSource.Spec(values=clip))
    attention = spec.build(12).double()
    q, k, v = (attention.split(layer(X).clamp(-0.2, 0.2)) for layer in (attention.q, attention.k, attention.v))
    scores = (0.5 * q @ k.mT).masked_fill(torch.ones(7, 7, dtype=torch.bool).triu(1), float("-inf"))
    expected = attention.out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))
    torch.testing.assert_close(attention(X, context()), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kv_heads", [0, 4, 5])
def test_heads_that_cannot_be_shared_are_refused(kv_heads):
    with pytest.raises(UsageError, match=f"{kv_heads} key-value heads cannot be shared by 6 heads"):
        MultiHeadAttention.Spec(heads=6, kv_heads=kv_heads, head_width=4).build(12)


def test_positions_of_the_target_are_refused_for_keys_of_the_source():
    with pytest.raises(UsageError, match="cross-attention asks for the position 'rotary'"):
        MultiHeadAttention.Spec(heads=3, kv_heads=3, head_width=4, source=CrossSource.Spec(), position="rotary").build(
            12
        )


def test_dropout_acts_in_training_only():
    attention = MultiHeadAttention.Spec(heads=3, kv_heads=3, head_width=4, scoring=ScoreSettings(dropout=0.5)).build(12)
    attention = attention.double()
    torch.manual_seed(0)
    assert not torch.equal(attention(X, context()), attention(X, context()))
    attention.eval()
    assert torch.equal(attention(X, context()), attention(X, context()))
