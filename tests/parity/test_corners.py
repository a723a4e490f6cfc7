"""Random corners of every family's configuration: any mixture of its settings equals the reference."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from orrery.families import load_family
from tests.goldens.cases import IMAGES as PICTURES
from tests.parity.helper import assert_close, pair, random_ids
from tests.parity.oracle import REFERENCED
from tests.parity.stand_ins import class_of

IMAGES = {*PICTURES, "blip", "vision_encoder_decoder", "clip", "clip_text_model", "siglip", "siglip_text_model"}

EPS = st.sampled_from([1e-6, 1e-3, 0.1])
ACTIVATION = st.sampled_from(["gelu", "relu", "silu", "gelu_new"])
SETTINGS = {
    "tie_word_embeddings": st.booleans(),
    "attention_bias": st.booleans(),
    "mlp_bias": st.booleans(),
    "qkv_bias": st.booleans(),
    "use_qkv_bias": st.booleans(),
    "use_bias": st.booleans(),
    "norm_topk_prob": st.booleans(),
    "rms_norm_eps": EPS,
    "layer_norm_eps": EPS,
    "layer_norm_epsilon": EPS,
    "norm_eps": EPS,
    "norm_epsilon": EPS,
    "hidden_act": ACTIVATION,
    "activation_function": ACTIVATION,
    "hidden_activation": ACTIVATION,
    "rope_theta": st.sampled_from([100.0, 10_000.0, 500_000.0]),
    "num_hidden_layers": st.integers(1, 3),
    "n_layer": st.integers(1, 3),
    "max_position_embeddings": st.sampled_from([40, 64]),
    "routed_scaling_factor": st.sampled_from([0.5, 1.0, 2.5]),
    "num_experts_per_tok": st.integers(1, 3),
    "scale_embedding": st.booleans(),
    "add_final_layer_norm": st.booleans(),
    "type_vocab_size": st.integers(1, 3),
    "encoder_layers": st.integers(1, 2),
    "decoder_layers": st.integers(1, 2),
    "relative_attention_num_buckets": st.sampled_from([8, 20]),
    "logit_scale": st.sampled_from([0.0625, 1.0]),
    "final_logit_softcapping": st.sampled_from([5.0, None]),
    "attn_logit_softcapping": st.sampled_from([5.0, None]),
    "embedding_multiplier": st.sampled_from([0.5, 12.0]),
    "residual_multiplier": st.sampled_from([0.22, 1.0]),
    "logits_scaling": st.sampled_from([1.0, 8.0]),
    "use_parallel_residual": st.booleans(),
    "qk_layernorm": st.booleans(),
    "do_layer_norm_before": st.booleans(),
    "_remove_final_layer_norm": st.booleans(),
    "enable_bias": st.booleans(),
    "layer_norm_elementwise_affine": st.booleans(),
    "bias": st.booleans(),
    "num_ln_in_parallel_attn": st.integers(1, 2),
    "window_size": st.integers(1, 9),
    "rotary_dim": st.sampled_from([2, 4, 8]),
    "clip_qkv": st.sampled_from([None, 0.05, 0.5, 6.0]),
    "n_heads": st.sampled_from([2, 3, 4, 6, 8]),
    "attn_config": st.fixed_dictionaries(
        {},
        optional={
            "clip_qkv": st.sampled_from([None, 0.05, 0.5]),
            "softmax_scale": st.sampled_from([None, 0.1, 1.0]),
            "alibi_bias_max": st.sampled_from([4, 8, 16]),
            "attn_impl": st.sampled_from(["torch", "triton"]),
        },
    ),
}
"""By key of ``config.json``, what it may be: a family draws those that it knows and does not fix."""

FIXED = {
    "deberta": {"tie_word_embeddings"},  # the reference cannot run one that is not tied
    "deberta_v2": {"tie_word_embeddings"},
    "gpt_oss": {"hidden_act"},  # its experts have an activation of their own
    "bamba": {"hidden_act", "num_hidden_layers"},  # as mamba2; the reference needs a layer that attends
    "falcon_h1": {"hidden_act"},  # as mamba2
    "granitemoehybrid": {"hidden_act"},  # as mamba2
    "qwen3_next": {"hidden_act"},  # as mamba2: the reference has another in the short convolution alone
    "phimoe": {"num_experts_per_tok"},  # its router chooses two, and the reference reads past the key
    "mamba2": {"hidden_act"},  # no published model has another than silu
    "rwkv": {"num_hidden_layers"},  # the reference divides by the layers less one as it draws weights
    "codegen": {"rotary_dim"},  # a head of the smallest has six channels
    "jamba": {"num_hidden_layers"},  # the reference needs a layer that attends
    "nemotron_h": {"tie_word_embeddings"},  # the reference has a head of its own all the same
    "recurrent_gemma": {"num_hidden_layers"},  # as jamba
    "zamba2": {"num_hidden_layers", "num_key_value_heads", "tie_word_embeddings"},  # as adapters need them
    "smollm3": {"num_hidden_layers"},  # the layers without positions are listed one by one
}


def corners(family):
    """Return a strategy of configurations."""
    rules = load_family(family)
    known = {key: values for key, values in SETTINGS.items() if key in rules.DEFAULTS}
    per_layer = {"layer_types", "num_hidden_layers"} <= rules.TINY.keys()
    left_out = FIXED.get(family, set()) | ({"num_hidden_layers"} if per_layer else set())
    drawn = {key: values for key, values in known.items() if key not in left_out}
    return st.fixed_dictionaries({}, optional=drawn)


@pytest.mark.each_family
@pytest.mark.parametrize("family", sorted(REFERENCED - IMAGES))
@settings(max_examples=settings().max_examples // 4)  # fifty families, half a second for five corners
@given(data=st.data())
@torch.no_grad()
def test_any_corner_equals_the_reference(family, data):
    rules = load_family(family)
    config = {**rules.TINY, "vocab_size": 97, **data.draw(corners(family))}
    made = class_of(rules.ARCHITECTURE)
    both = pair(made.config_class.model_type, auto=rules.ARCHITECTURE, **config)
    ids = random_ids(2, 9)
    targets = [random_ids(2, 5, seed=2)] if both.theirs.config.is_encoder_decoder else []
    extra = {"decoder_input_ids": targets[0]} if targets else {}
    expected = both.reference(ids, **extra).logits
    assert_close(f"forward of {config}", both, ids, both.ours.logits(ids, *targets), expected, 1e-9)
