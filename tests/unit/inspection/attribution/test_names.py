"""TransformerLens' names: one for one tensor, in its layout, and none that gives another."""

import pytest
import torch

from orrery.errors import UsageError
from orrery.inspection.attribution.names import ROTATED, SAME, TURNED, legacy_names
from orrery.inspection.trace import trace
from tiny_models import inputs_for, smallest


def looked(family, **call):
    model = smallest(family)
    return trace(model, *inputs_for(model), **call)


@pytest.mark.parametrize("table", [SAME | TURNED, SAME | ROTATED], ids=["plain", "rotary"])
def test_the_tables_are_one_to_one(table):
    assert len(set(table.values())) == len(table)


@pytest.mark.parametrize("family", ["gpt2", "llama", "bloom", "gemma2", "bert", "gptj"])
def test_every_name_gives_the_tensor_of_its_key(family):
    traced = looked(family)
    names = legacy_names(traced)
    assert len(set(names.values())) == len(names)
    assert {"hook_embed", "blocks.1.hook_resid_pre", "blocks.0.attn.hook_pattern"} <= set(names)
    for name, key in names.items():
        value = traced[name]
        turned = name.endswith(("_q", "_k", "_v", "_z"))
        assert torch.equal(value, traced[key].transpose(1, 2) if turned else traced[key])
    assert (("blocks.0.attn.hook_q" in names), ("blocks.0.attn.hook_rot_q" in names)) == (
        family not in ("llama", "gemma2", "gptj"),
        family in ("llama", "gemma2", "gptj"),
    )


def test_layouts_are_those_of_transformer_lens():
    traced = looked("llama")
    assert traced["blocks.0.attn.hook_z"].shape == (2, 7, 6, 4)
    assert traced["blocks.0.attention.mixed"].shape == (2, 6, 7, 4)
    assert traced["blocks.0.attn.hook_v"].shape == (2, 7, 2, 4)
    assert traced["blocks.0.attn.hook_result"].shape == (2, 7, 6, 24)
    torch.testing.assert_close(
        traced["blocks.0.attn.hook_result"].sum(2), traced["blocks.0.attention.added"], rtol=0, atol=1e-12
    )


def test_what_follows_from_kept_values():
    traced = looked("gpt2")
    block, norm = traced.model.stack.blocks[0], traced.model.stack.final
    torch.testing.assert_close(traced["hook_embed"] + traced["hook_pos_embed"], traced["embedded"])
    pre = traced["blocks.0.mlp.hook_pre"]
    torch.testing.assert_close(block.feed_forward.branch.activation(pre), traced["blocks.0.feed_forward.hidden"])
    scaled = traced["ln_final.hook_normalized"] * norm.weight + norm.bias
    torch.testing.assert_close(scaled, traced["ln_final.hook_out"])
    x = traced["blocks.1.resid_post"]
    torch.testing.assert_close(
        traced["ln_final.hook_scale"] * traced["ln_final.hook_normalized"], x - x.mean(-1, keepdim=True)
    )
    torch.testing.assert_close(
        traced["blocks.0.ln1.hook_normalized"] * block.attention.pre.weight + block.attention.pre.bias,
        block.attention.pre(traced["blocks.0.hook_resid_pre"]),
    )
    gated = looked("llama")
    up, gate = gated["blocks.0.mlp.hook_pre_linear"], gated["blocks.0.mlp.hook_pre"]
    branch = gated.model.stack.blocks[0].feed_forward.branch
    torch.testing.assert_close(branch.activation(gate) * up, gated["blocks.0.mlp.hook_post"])


@pytest.mark.parametrize(
    ("family", "name", "why"),
    [
        ("llama", "blocks.0.attn.hook_q", "after the rotation, as hook_rot_q"),
        ("gpt2", "blocks.0.attn.hook_rot_k", "nothing is rotated"),
        ("deepseek_v2", "blocks.0.attn.hook_rot_q", "a rotated and a plain part"),
        ("bert", "blocks.0.hook_resid_mid", "after the norms that act on them"),
        ("bert", "blocks.1.hook_resid_post", "after the norms that act on them"),
        ("gpt2", "blocks.5.hook_resid_pre", "it has 2 blocks"),
        ("llama", "hook_pos_embed", "adds no positions"),
        ("gpt2", "blocks.0.mlp.hook_pre_linear", "no such channels"),
        ("gptj", "blocks.0.hook_attn_out", "no sublayer of block 0 is attention alone"),
        ("lstm", "blocks.0.hook_mlp_out", "no sublayer of block 0 is feed-forward alone"),
        ("mixtral", "blocks.0.mlp.hook_pre", "no such channels"),
        ("bert", "ln_final.hook_scale", "no single norm"),
        ("lstm", "blocks.0.attn.hook_result", "no heads"),
        ("bert", "blocks.0.ln1.hook_scale", "no norm stands before"),
    ],
)
def test_a_name_without_a_tensor_is_refused(family, name, why):
    with pytest.raises(UsageError, match=why):
        looked(family)[name]


def test_other_names_are_as_before():
    with pytest.raises(UsageError, match="nothing is called 'hook_embedding'"):
        looked("gpt2")["hook_embedding"]
    assert "blocks.0.attn.hook_z" not in looked("gpt2")  # `in` and list(trace) speak of keys
