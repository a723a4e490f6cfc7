"""The algebra of blocks: the course's two chains, and the other placements of norms, as formulas."""

import pytest
import torch

from orrery.errors import UsageError
from orrery.nn.attention.kernels import eager
from orrery.nn.attention.multihead import MultiHeadAttention
from orrery.nn.block import Block
from orrery.nn.cache.contract import UNCACHED, Layer
from orrery.nn.context import Context
from orrery.nn.elementwise import Clamp
from orrery.nn.feedforward.mlp import MLP
from orrery.nn.masks import PLAIN_CAUSAL, Causal
from orrery.nn.norms import LayerNorm
from orrery.nn.positions.scheme import NO_POSITION
from orrery.nn.residual import Chain, Dropout, Identity, Normed, NoSkip, Residual, Scale, Sum
from orrery.nn.spec import from_json, to_json
from orrery.nn.stack import Stack

X = torch.randn(2, 5, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
NORM = LayerNorm.Spec()
ATTENTION = MultiHeadAttention.Spec(heads=2, kv_heads=2, head_width=4)
FFN = MLP.Spec(hidden=16, activation="relu")


def context(taps=None):
    return Context(
        positions={"none": NO_POSITION},
        masks={"causal": PLAIN_CAUSAL},
        cache=UNCACHED,
        kernel=eager,
        layer=Layer(0, "blocks.0", UNCACHED),
        taps=taps,
    )


def build(spec):
    module = spec.build(8).double()
    for i, parameter in enumerate(module.parameters()):
        parameter.data = torch.randn(parameter.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(i))
    return module


def block(**slots):
    return build(
        Block.Spec(
            residuals={
                "attention": Residual.Spec(branch=ATTENTION, **slots),
                "feed_forward": Residual.Spec(branch=FFN, **slots),
            }
        )
    )


def same(a, b):
    torch.testing.assert_close(a, b, rtol=0, atol=1e-12)


def test_chain_t1_to_t5_is_pre_norm():
    ours, ctx = block(pre=NORM), context()
    t1 = ours.attention.pre(X)
    t2 = ours.attention.branch(t1, ctx)
    t3 = t2 + X
    t4 = ours.feed_forward.pre(t3)
    t5 = ours.feed_forward.branch(t4, ctx)
    same(ours(X, ctx), t5 + t3)


def test_chain_T1_to_T5_is_post_norm():
    ours, ctx = block(out=NORM), context()
    T1 = ours.attention.branch(X, ctx)
    T2 = X + T1
    T3 = ours.attention.out(T2)
    T4 = ours.feed_forward.branch(T3, ctx)
    T5 = T4 + T3
    same(ours(X, ctx), ours.feed_forward.out(T5))


def test_every_slot_has_its_place_in_the_one_line():
    spec = Residual.Spec(branch=FFN, pre=NORM, post=NORM, out=NORM, skip=Scale.Spec(factor=1.7))
    r, ctx = build(spec), context()
    same(r(X, ctx), r.out(1.7 * X + r.post(r.branch(r.pre(X), ctx))))


def test_parallel_branches_add_up_with_norms_of_their_own():
    parts = {"attention": Normed.Spec(norm=NORM, branch=ATTENTION), "feed_forward": FFN}
    r = build(Residual.Spec(branch=Sum.Spec(branches=parts)))
    attention, ffn = r.branch.attention, r.branch.feed_forward
    ctx = context()
    same(r(X, ctx), X + (attention.branch(attention.norm(X), ctx) + ffn(X, ctx)))


def test_a_branch_may_have_factors_of_its_own():
    r = build(Normed.Spec(norm=Scale.Spec(factor=0.5), branch=ATTENTION, post=Scale.Spec(factor=3.0)))
    same(r(X, context()), 3.0 * r.branch(0.5 * X, context()))


def test_taps_name_roles_wherever_a_branch_is_nested():
    parts = {"attention": Normed.Spec(norm=NORM, branch=ATTENTION), "feed_forward": FFN}
    nested = build(Block.Spec(residuals={"parallel": Residual.Spec(branch=Sum.Spec(branches=parts))}))
    keys = []
    nested(X, context(lambda key, value: keys.append(key) or value))
    assert "blocks.0.attention.pattern" in keys
    assert "blocks.0.feed_forward.hidden" in keys
    assert "blocks.0.parallel.added" in keys
    assert len(set(keys)) == len(keys)


def test_small_slots():
    assert build(Chain.Spec(parts=(Scale.Spec(factor=2.0), Scale.Spec(factor=3.0))))(X).equal(3.0 * (2.0 * X))
    assert isinstance(Dropout.Spec(rate=0.0).build(8), Identity)


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
def test_dropout_zeroes_its_share_and_keeps_the_mean(rate):
    dropout, ones = Dropout.Spec(rate=rate).build(8), torch.ones(50, 401, 7, dtype=torch.float64, requires_grad=True)
    torch.manual_seed(3)
    dropped = dropout(ones)
    spread = 4 * (rate * (1 - rate) / ones.numel()) ** 0.5
    assert abs(float((dropped == 0).double().mean()) - rate) < spread
    assert set(dropped.unique().tolist()) == {0.0, 1 / (1 - rate)}
    # Neighbours share a draw and must not share a fate; nor may rows.
    lost = (dropped == 0).double().flatten() - rate
    for distance in (1, 2, 3, 4, 7):
        assert abs(float((lost[:-distance] * lost[distance:]).mean())) < 4 * rate * (1 - rate) / ones.numel() ** 0.5
    dropped.sum().backward()
    assert torch.equal(ones.grad, dropped.detach())
    torch.manual_seed(3)
    assert torch.equal(dropout(ones), dropped)
    assert dropout.eval()(ones) is ones


@pytest.mark.parametrize(("slot", "name"), [("position", "rotary"), ("mask", "local")])
def test_a_name_that_the_stack_lacks_is_refused(slot, name):
    attention = MultiHeadAttention.Spec(heads=2, kv_heads=2, head_width=4, **{slot: name})
    blocks = (Block.Spec(residuals={"attention": Residual.Spec(branch=attention)}),)
    with pytest.raises(UsageError, match=f"{slot} '{name}'"):
        Stack.Spec(blocks=blocks, positions={}, masks={"causal": Causal()}).build(8)


@pytest.mark.parametrize("wrap", [lambda a: Normed.Spec(norm=NORM, branch=a), lambda a: Sum.Spec(branches={"a": a})])
def test_a_missing_name_is_found_inside_parallel_branches_too(wrap):
    attention = MultiHeadAttention.Spec(heads=2, kv_heads=2, head_width=4, mask="local")
    blocks = (Block.Spec(residuals={"attention": Residual.Spec(branch=wrap(attention))}),)
    with pytest.raises(UsageError, match="mask 'local'"):
        Stack.Spec(blocks=blocks, positions={}, masks={"causal": Causal()}).build(8)


def test_where_there_is_no_skip_nothing_of_the_stream_goes_on_even_what_is_not_finite():
    sublayer = build(Residual.Spec(branch=FFN, pre=Clamp.Spec(bound=1.0), skip=NoSkip.Spec()))
    infinite = X.index_fill(2, torch.tensor([1]), torch.inf)
    assert build(Scale.Spec(factor=0.0))(infinite).isnan().any()
    out = sublayer(infinite, context())
    assert torch.equal(out, sublayer.branch(infinite.clamp(-1, 1), context()))
    narrow = build(NoSkip.Spec())(X.float())
    assert narrow.shape == X.shape
    assert narrow.dtype == torch.float32  # beside a branch in bfloat16 the stream keeps its format
    assert not narrow.any()


def test_a_skip_of_zero_in_an_old_spec_is_no_skip_and_any_other_scale_stays():
    old = {**to_json(Residual.Spec(branch=FFN)), "skip": {"kind": "nn.residual.Scale", "factor": 0.0}}
    assert from_json(old) == Residual.Spec(branch=FFN, skip=NoSkip.Spec())
    assert from_json({**old, "skip": {"kind": "nn.residual.Scale", "factor": 0}}) == from_json(old)
    for kept in (
        Residual.Spec(branch=FFN, skip=Scale.Spec(factor=0.5)),
        Residual.Spec(branch=FFN, post=Scale.Spec(factor=0.0), skip=NoSkip.Spec()),
    ):
        assert from_json(to_json(kept)) == kept
