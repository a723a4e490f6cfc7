"""InternLM3 against Llama with its biases: the published reference is code beside the weights, which is just that.

transformers' Seed-OSS has a setting for each of the biases and stands in for it, see ``stand_ins``.
"""

import pytest
import torch
import transformers

from orrery.checkpoints.rules import to_ours
from orrery.families import load_family, rules_of
from tests.parity import oracle
from tests.parity.helper import assert_parity, error, load, pair, random_ids, shapes_of

TINY = {key: value for key, value in load_family("internlm3").TINY.items() if key != "vocab_size"}
DYNAMIC = {"rope_theta": 500.0, "rope_scaling": {"rope_type": "dynamic", "factor": 6.0}}
SIDES = [(qkv, rest) for qkv in (False, True) for rest in (False, True)]


@pytest.mark.parametrize(("qkv", "rest"), SIDES)
def test_float64_with_either_group_of_biases(qkv, rest):
    both = assert_parity("internlm3", 1e-9, **{**TINY, "qkv_bias": qkv, "bias": rest})
    held = {name.split(".")[-2] for name in oracle.file_of(both.theirs) if name.endswith(".bias")}
    groups = [("q_proj", "k_proj", "v_proj"), ("o_proj", "gate_proj", "up_proj", "down_proj")]
    assert held == {name for asked, group in zip((qkv, rest), groups, strict=True) if asked for name in group}


@pytest.mark.parametrize(("qkv", "rest"), [(False, False), (True, True)])
@torch.no_grad()
def test_it_is_llama_where_llama_can_say_it(qkv, rest):
    """A second witness: Llama itself, which knows both groups of biases or neither, with the same file."""
    config = {**TINY, "qkv_bias": qkv, "bias": rest, **DYNAMIC, "max_position_embeddings": 8}
    both = pair("internlm3", **config)
    as_llama = {**config, "attention_bias": config.pop("qkv_bias"), "mlp_bias": config.pop("bias")}
    as_llama = {key: value for key, value in as_llama.items() if key not in ("qkv_bias", "bias")}
    with oracle.widened(oracle.modelling("llama")):
        settings = transformers.LlamaConfig(vocab_size=97, **as_llama)
        llama = transformers.LlamaForCausalLM._from_config(settings, attn_implementation="eager").double().eval()
        llama.load_state_dict(both.theirs.state_dict())
        expected = llama(random_ids(2, 14)).logits
    assert error(both.ours.logits(random_ids(2, 14)), expected) < 1e-9


@torch.no_grad()
def test_positions_stretch_with_what_is_read_beyond_the_trained_length():
    """A pass over n tokens turns at the rates of n; cached decoding equals it at the same capacity."""
    both, ids = pair("internlm3", **{**TINY, **DYNAMIC, "max_position_embeddings": 8}), random_ids(2, 14)
    expected = both.reference(ids).logits
    assert error(both.ours.logits(ids), expected) < 1e-9
    logits, session = both.ours.start(ids[:, :4], capacity=14)
    stepped = both.ours.step(ids[:, 4:], session)
    assert error(torch.cat([logits[:, None], stepped], 1), expected[:, 3:]) < 1e-9
    plain = pair("internlm3", **{**TINY, **DYNAMIC, "rope_scaling": None, "max_position_embeddings": 8})
    assert error(plain.ours.logits(ids), expected) > 1e-3


@torch.no_grad()
def test_a_bias_in_the_wrong_place_is_found():
    both, ids = pair("internlm3", **{**TINY, "bias": True}), random_ids(2, 9)
    tensors = to_ours(
        oracle.file_of(both.theirs), rules_of(load_family("internlm3"), both.config), shapes_of(both.ours)
    )
    tensors["stack.blocks.1.feed_forward.branch.gate.bias"] = tensors["stack.blocks.1.feed_forward.branch.up.bias"]
    load(both.ours, tensors)
    assert error(both.ours.logits(ids), both.reference(ids).logits) > 1e-3
