"""Settings that were once read otherwise than the reference reads them, one by one; ``test_keys.py`` tries them all."""

import pytest
import torch

from orrery.errors import ModelFileError
from orrery.families import load_family
from tests.parity.helper import assert_close, pair, random_ids

ROW = {**load_family("llama").TINY, "vocab_size": 97, "max_position_embeddings": 64}
T5 = {**load_family("t5").TINY, "vocab_size": 97, "decoder_start_token_id": 0}


@pytest.mark.parametrize(
    "settings",
    [
        {"rope_type": "dynamic", "factor": 2.0, "original_max_position_embeddings": 16},
        {"rope_type": "yarn", "factor": 2.0, "original_max_position_embeddings": 12, "beta_slow": 2, "truncate": False},
        {"rope_type": "yarn", "factor": None, "original_max_position_embeddings": 12},
        {"rope_type": "default", "original_max_position_embeddings": 16},
    ],
    ids=str,
)
@torch.no_grad()
def test_rotary_settings_mean_what_the_reference_means(settings):
    both = pair("llama", rope_parameters=settings, **ROW)
    ids = random_ids(2, 40)
    assert_close("forward", both, ids, both.ours.logits(ids), both.reference(ids).logits, 1e-9)


@pytest.mark.parametrize(
    "settings",
    [{"dense_act_fn": "silu"}, {"dense_act_fn": "gelu_new", "is_gated_act": True}, {"feed_forward_proj": "gated-tanh"}],
    ids=str,
)
@torch.no_grad()
def test_the_activation_of_t5_may_have_a_key_of_its_own(settings):
    both = pair("t5", auto="AutoModelForSeq2SeqLM", **T5, **settings)
    source, target = random_ids(2, 9), random_ids(2, 5, seed=2)
    expected = both.reference(source, decoder_input_ids=target).logits
    assert_close("forward", both, source, both.ours.logits(source, target), expected, 1e-9)


@pytest.mark.parametrize(
    ("family", "config", "named"),
    [
        ("llama", {"rope_parameters": {"rope_type": "default", "partial_rotary_factor": 0.5}}, "partial_rotary_factor"),
        ("qwen2", {"rope_scaling": {"type": "linear", "factor": 2.0, "partial_rotary_factor": 0.5}}, "partial_rotary"),
        ("gpt_neox", {"partial_rotary_factor": 0.5}, "partial_rotary_factor"),
        ("gpt_neox", {"rotary_pct": 2}, "head_dim"),
        ("llama", {"head_dim": 3}, "head_dim"),
        ("gemma3_text", {"rope_parameters": {"full_attention": {"rope_type": "yarn", "truncate": False}}}, "truncate"),
        ("bloom", {"slow_but_exact": True, "pretraining_tp": 2}, "slow_but_exact"),
        ("falcon", {"parallel_attn": False}, "parallel_attn = false"),
        ("falcon", {"parallel_attn": False, "num_ln_in_parallel_attn": 1}, "parallel_attn = false"),
        ("t5", {"relative_attention_max_distance": 1}, "relative_attention_max_distance"),
        ("t5", {"relative_attention_num_buckets": 32}, "relative_attention_num_buckets"),
        ("mt5", {"relative_attention_num_buckets": 2}, "relative_attention_num_buckets"),
        ("deepseek_v3", {"head_dim": 2}, "head_dim"),
        ("bert", {"hidden_size": 24.5}, "not a whole number"),
    ],
)
def test_what_the_reference_reads_past_is_refused_by_name(family, config, named):
    rules = load_family(family)
    with pytest.raises(ModelFileError, match=named):
        rules.spec({**rules.TINY, **config})
