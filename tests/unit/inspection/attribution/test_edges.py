"""Attention beside what it does: lengths by brute force, shares that sum to a head's, and an edge that is cut."""

from dataclasses import replace

import pytest
import torch

from orrery.errors import UsageError
from orrery.inspection.explain.explain import Explainer
from orrery.inspection.trace import trace
from orrery.nn.residual import Scale
from tiny_models import inputs_for, randomised, smallest

ATTENTIONS = {
    "gpt2": "blocks.1.attention",
    "llama": "blocks.0.attention",
    "gptj": "blocks.0.attention",
    "gemma2": "blocks.0.attention",
    "deepseek_v2": "blocks.0.attention",
    "gpt_oss": "blocks.0.attention",
    "qwen3_next": "blocks.1.attention",  # with a gate on what is mixed
    "bart": "blocks.0.cross",
    "t5": "blocks.1.cross",
}


def looked(family, **call):
    model = smallest(family)
    return trace(model, *inputs_for(model), **call)


def values(traced, key):
    v_BKSC, heads = traced[f"{key}.v"], traced[f"{key}.pattern"].shape[1]
    return v_BKSC.repeat_interleave(heads // v_BKSC.shape[1], dim=1)


@pytest.mark.parametrize("family", [*ATTENTIONS, "bert", "deberta"])
def test_the_length_of_an_edge_is_that_of_what_it_writes(family):
    traced, key = looked(family), ATTENTIONS.get(family, "blocks.0.attention")
    weighted_BHLS = traced.weighted_pattern(key)
    pattern_BHLS, v_BHSC = traced[f"{key}.pattern"], values(traced, key)
    modules = traced.model.stack.blocks[int(key[7])].modules()
    out = next(m for m in modules if getattr(m, "role", "") == key[9:] and hasattr(m, "q")).out
    for head, query, place in ((0, 3, 1), (1, 6, 6), (1, 5, 0)):
        alone = torch.zeros(v_BHSC.shape[1], v_BHSC.shape[3], dtype=torch.float64)
        alone[head] = pattern_BHLS[1, head, query, place] * v_BHSC[1, head, place]
        if f"{key}.gate" in traced.values:
            alone[head] *= traced[f"{key}.gate"][1, head, query]
        written_D = out(alone.flatten()) - out(torch.zeros_like(alone.flatten()))
        assert float(weighted_BHLS[1, head, query, place]) == pytest.approx(written_D.norm().item(), abs=1e-12)


@pytest.mark.parametrize("family", ATTENTIONS)
def test_the_shares_of_a_head_sum_to_the_head(family):
    traced, key = looked(family), ATTENTIONS[family]
    shares = traced.edge_shares(key, 3, against=5, position=None)
    whole = traced.logit_attribution(3, against=5, position=None)
    assert shares.check.value < 1e-12
    torch.testing.assert_close(shares.logit_BP, whole.logit_BP)
    for head in range(shares.value_BHPS.shape[1]):
        expected_BP = whole.value_NBP[whole.names.index(f"{key}.head.{head}")]
        torch.testing.assert_close(shares.value_BHPS[:, head].sum(-1), expected_BP, rtol=0, atol=1e-12)
    one = traced.edge_shares(key, 3, against=5, position=2)
    torch.testing.assert_close(one.value_BHPS[:, :, 0], shares.value_BHPS[:, :, 2])


def test_a_cut_edge_takes_its_share_with_it():
    """In the last block nothing reads what an edge writes but the final norm, whose scale the share holds fixed."""
    traced = looked("llama")

    def cut(value, key):
        value = value.clone()
        value[:, 1, -1, 2] = 0
        return value

    less = looked("llama", edit={"blocks.1.attention.pattern": cut})
    share_B = traced.edge_shares("blocks.1.attention", 3).value_BHPS[:, 1, 0, 2]
    gone_BD = (traced["blocks.1.attention.added"] - less["blocks.1.attention.added"])[:, -1]
    norm, x_BD = traced.model.stack.final, traced["blocks.1.resid_post"][:, -1]
    scale_B1 = (x_BD.square().mean(-1, keepdim=True) + norm.eps).rsqrt()
    direct_B = (gone_BD * scale_B1 * norm.weight) @ traced.model.head.vocabulary.weight[3]
    torch.testing.assert_close(share_B, direct_B.detach(), rtol=0, atol=1e-12)


def test_the_readers_attention_has_lengths():
    assert looked("t5").weighted_pattern("encoder.blocks.0.attention").shape == (2, 3, 9, 9)


def test_what_has_no_edges_is_refused():
    with pytest.raises(UsageError, match="BahdanauDecoder, which has no output matrix a head"):
        looked("rnnsearch").weighted_pattern("blocks.0.cross")
    with pytest.raises(UsageError, match=r"nothing is called 'blocks\.7\.attention'"):
        looked("gpt2").weighted_pattern("blocks.7.attention")
    with pytest.raises(UsageError, match=r"needs 'blocks\.0\.attention\.pattern'"):
        looked("gpt2", keep=["*.v"]).weighted_pattern("blocks.0.attention")


def test_the_check_sees_values_of_another_run():
    traced = looked("gpt2")
    traced.values["blocks.1.attention.v"].mul_(1.01)
    assert not traced.edge_shares("blocks.1.attention", 3).check.passed


def test_factors_of_parallel_branches_count_for_what_their_parts_add():
    """GPT-NeoX with another factor behind either branch, as Falcon-H1 has them."""
    spec = smallest("gpt_neox").spec
    parallel = spec.stack.blocks[0].residuals["parallel"]
    factors = zip(parallel.branch.branches.items(), (0.5, 3.0), strict=True)
    branches = {name: replace(branch, post=Scale.Spec(factor=factor)) for (name, branch), factor in factors}
    residual = replace(parallel, branch=replace(parallel.branch, branches=branches))
    blocks = tuple(replace(block, residuals={"parallel": residual}) for block in spec.stack.blocks)
    model = randomised(replace(spec, stack=replace(spec.stack, blocks=blocks)).build(0).double().eval())
    (ids,) = inputs_for(model)
    traced = trace(model, ids)
    assert traced.logit_attribution(position=None).check.value < 1e-12
    shares = traced.edge_shares("blocks.0.attention", 3, position=None)
    whole = traced.logit_attribution(3, position=None)
    expected_BP = whole.value_NBP[whole.names.index("blocks.0.attention.head.1")]
    torch.testing.assert_close(shares.value_BHPS[:, 1].sum(-1), expected_BP, rtol=0, atol=1e-12)
    alone = trace(model, ids[:1])
    assert Explainer(model, alone, ids[:1], None).explain("blocks.0.parallel.added", (2, 1)).check.value < 1e-12
