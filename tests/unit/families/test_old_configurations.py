"""Configurations as they were published: old names of keys mean what the new ones mean."""

import pytest

from orrery.errors import ModelFileError
from orrery.families import load_family

SAME = {
    "bloom": ({"n_embed": 32, "num_attention_heads": 4, "offset_alibi": 100}, {"hidden_size": 32, "n_head": 4}),
    "gpt_neox": (
        {"rotary_pct": 0.5, "rotary_emb_base": 500, "rope_scaling": {"type": "linear", "factor": 2.0}},
        {
            "rope_parameters": {
                "rope_type": "linear",
                "factor": 2.0,
                "rope_theta": 500,
                "partial_rotary_factor": 0.5,
            }
        },
    ),
    "falcon": (
        {"n_embed": 48, "n_head": 4, "n_layer": 3, "n_head_kv": 4},
        {"hidden_size": 48, "num_attention_heads": 4, "num_hidden_layers": 3, "num_kv_heads": 4},
    ),
    "phi": (
        {"partial_rotary_factor": 1.0, "rope_theta": 500, "rope_scaling": None},
        {"rope_parameters": {"rope_type": "default", "rope_theta": 500.0, "partial_rotary_factor": 1.0}},
    ),
}
REFUSED = {
    "phi3": {"attention_bias": True},
    "starcoder2": {"mlp_type": "gated"},
    "bloom": {"apply_residual_connection_post_layernorm": True},
    "gpt_neox": {"rope_scaling": {"type": "unheard_of"}},
    "mpt": {"no_bias": False},
    "falcon": {"apply_residual_connection_post_layernorm": True},
}


@pytest.mark.parametrize("name", SAME)
def test_old_names_mean_the_same(name):
    family = load_family(name)
    old, new = SAME[name]
    rest = {key: value for key, value in family.TINY.items() if key not in new}
    assert family.spec({**rest, **old}) == family.spec({**rest, **new})
    assert family.spec({**rest, **old}) != family.spec(family.TINY)


def test_two_names_of_one_setting_with_two_values_are_refused():
    family = load_family("bloom")
    assert family.spec({**family.TINY, "n_embed": 24}) == family.spec(family.TINY)
    with pytest.raises(ModelFileError, match="hidden_size = 24, n_embed = 32: two names of one setting"):
        family.spec({**family.TINY, "n_embed": 32})


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_done_is_refused_by_name(name):
    family = load_family(name)
    with pytest.raises(ModelFileError, match=name):
        family.spec({**family.TINY, **REFUSED[name]})
