"""Phi-3 against transformers."""

import pytest
import torch

from orrery.errors import ModelFileError
from orrery.families import load_family
from tests.parity.helper import assert_parity, error, pair

TINY = {
    "hidden_size": 32,
    "intermediate_size": 56,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 64,
}


@pytest.mark.parametrize(
    "corner",
    [
        {},
        {"num_key_value_heads": 2, "sliding_window": 5},
        {"tie_word_embeddings": True, "rms_norm_eps": 0.1, "partial_rotary_factor": 0.5},
        {"num_key_value_heads": 1, "hidden_act": "gelu", "rope_theta": 500.0},
    ],
    ids=str,
)
def test_float64(corner):
    assert_parity("phi3", 1e-9, **TINY, **corner)


def test_without_replacing_the_casts():
    assert_parity("phi3", 1e-6, wide=False, **TINY)


def test_float32():
    assert_parity("phi3", 1e-5, dtype=torch.float32, wide=False, **TINY)


def longrope(pairs, trained, **more):
    """Return the settings of a model whose every pair of channels has two factors."""
    short, long = ([round(1 + scale * i, 2) for i in range(pairs)] for scale in (0.1, 1.7))
    settings = {"rope_type": "longrope", "short_factor": short, "long_factor": long, "rope_theta": 500.0, **more}
    return {"rope_parameters": settings, "original_max_position_embeddings": trained}


PAIRS = TINY["hidden_size"] // TINY["num_attention_heads"] // 2


@pytest.mark.parametrize("trained", [3, 24], ids=["long", "short"])  # the reference changes its mind between them
@pytest.mark.parametrize(
    "more", [{}, {"attention_factor": 0.8}, {"factor": 3.0}, {"partial_rotary_factor": 0.5}, {"factor": 0.5}], ids=str
)
def test_longrope(trained, more):
    pairs = int(PAIRS * more.get("partial_rotary_factor", 1))
    assert_parity("phi3", 1e-9, **{**TINY, **longrope(pairs, trained, **more)})


def test_longrope_at_the_trained_length():
    both = pair("phi3", **{**TINY, **longrope(PAIRS, 8)})
    ids = torch.randint(3, 97, (2, 12), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        errors = {n: error(both.ours.logits(ids[:, :n]), both.reference(ids[:, :n]).logits) for n in (1, 7, 8, 9, 12)}
    assert max(errors.values()) < 1e-9, errors


@pytest.mark.parametrize("kind", ["su", "yarn"])
def test_the_old_names_of_longrope(kind):
    settings = longrope(PAIRS, 8)
    named = {key: value for key, value in settings["rope_parameters"].items() if key != "rope_type"}
    old = {**settings, "rope_parameters": None, "rope_scaling": {"type": kind, **named}}
    rules = load_family("phi3")
    assert rules.spec({**TINY, **old}) == rules.spec({**TINY, **settings})


def test_longrope_is_fixed_by_the_capacity_so_that_cached_equals_full():
    both = pair("phi3", **{**TINY, **longrope(PAIRS, 8)})
    ids = torch.randint(3, 97, (2, 14), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        for capacity, tokens in ((14, 14), (8, 8)):
            expected = both.reference(ids[:, :tokens]).logits
            logits, session = both.ours.start(ids[:, :4], capacity=capacity)
            stepped = both.ours.step(ids[:, 4:tokens], session)
            assert error(torch.cat([logits[:, None], stepped], 1), expected[:, 3:]) < 1e-9
        far = torch.arange(3, 9)[None]  # few tokens, but far: the furthest position counts
        far_logits = both.ours.logits(ids[:, :6], positions=far)
        assert error(far_logits, both.reference(ids[:, :6], position_ids=far).logits) < 1e-9


def test_longrope_in_packed_rows_looks_at_each_document():
    both = pair("phi3", **{**TINY, **longrope(PAIRS, 8)})
    ids = torch.randint(3, 97, (1, 14), generator=torch.Generator().manual_seed(1))
    documents = torch.tensor([[0] * 7 + [1] * 7])
    with torch.no_grad():
        packed = both.ours.logits(ids, documents=documents)
        for part in (slice(0, 7), slice(7, 14)):
            assert error(packed[:, part], both.ours.logits(ids[:, part])) < 1e-9


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"short_factor": [1.0]}, "short_factor is 1 numbers"),
        ({"long_factor": None}, "long_factor is None"),
        ({"long_factor": [1.0] * (PAIRS - 1) + [0.0]}, "long_factor is "),
        ({"mscale": 1.0}, "unknown keys mscale"),
    ],
    ids=str,
)
def test_senseless_longrope_is_refused_by_name(change, message):
    settings = longrope(PAIRS, 8, **change)
    with pytest.raises(ModelFileError, match=f"phi3: .*{message}"):
        load_family("phi3").spec({**TINY, **settings})


def test_other_rotary_scalings_are_refused():
    with pytest.raises(ModelFileError, match=r"phi3: .*rope_type = 'linear'"):
        load_family("phi3").spec({**TINY, "rope_scaling": {"type": "linear", "factor": 2.0}})
