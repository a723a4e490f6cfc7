"""Every mask is its rule, written as two loops, however it is rendered."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from orrery.errors import UsageError
from orrery.nn.masks import EMPTY_SLOT, Both, Causal, Full, Prefix, SameDocument, TokenPositions, Window, bind

RULES = {
    Full(): lambda q, k: k["position"] != EMPTY_SLOT,
    Causal(): lambda q, k: k["position"] <= q["position"],
    Prefix(): lambda q, k: k["position"] <= q["position"] or k["position"] < q["prefix"],
    SameDocument(): lambda q, k: k["document"] == q["document"],
    Window(length=3): lambda q, k: k["position"] > q["position"] - 3,
}


def rule(mask):
    if isinstance(mask, Both):
        return lambda q, k: rule(mask.first)(q, k) and rule(mask.second)(q, k)
    return RULES[mask]


MASKS = [
    *[mask for mask in RULES if not isinstance(mask, Window)],
    Causal() & Window(length=3),
    Causal() & SameDocument(),
    Prefix() & SameDocument(),
    Causal() & Window(length=3) & SameDocument(),
]


def places(tokens, rng):
    """Return random places of two rows."""
    positions, documents, prefix = (torch.randint(top, (2, tokens), generator=rng) for top in (7, 3, 5))
    return TokenPositions(positions, documents, prefix)


def at(places, b, i):
    return {
        "position": int(places.positions[b, i]),
        "document": int(places.documents[b, i]),
        "prefix": int(places.prefix[b, i]),
    }


@pytest.mark.parametrize("mask", MASKS, ids=str)
@given(queries=st.integers(1, 4), keys=st.integers(1, 5), seed=st.integers(0, 10_000))
def test_a_dense_mask_is_two_loops(mask, queries, keys, seed):
    rng = torch.Generator().manual_seed(seed)
    query, key = places(queries, rng), places(keys, rng)
    unused = torch.rand(2, keys, generator=rng) < 0.3
    key = TokenPositions(key.positions.masked_fill(unused, EMPTY_SLOT), key.documents, key.prefix)
    naive = torch.tensor(
        [
            [[[rule(mask)(at(query, b, i), at(key, b, j)) for j in range(keys)] for i in range(queries)]]
            for b in range(2)
        ]
    )
    bound = bind(mask, query, key)
    assert not bound.is_causal
    assert torch.equal(bound.dense, naive)


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4))
def test_packed_causal_is_a_block_diagonal_of_triangles(lengths):
    documents = torch.repeat_interleave(torch.arange(len(lengths)), torch.tensor(lengths))[None]
    positions = torch.cat([torch.arange(length) for length in lengths])[None]
    packed = TokenPositions(positions, documents)
    expected = torch.block_diag(*[torch.ones(n, n).tril() for n in lengths]).bool()
    assert torch.equal(bind(Causal() & SameDocument(), packed, packed).dense[0, 0], expected)


@given(st.integers(1, 6), st.integers(1, 8))
def test_a_window_is_a_band(length, tokens):
    row = TokenPositions(torch.arange(tokens)[None])
    expected = torch.ones(tokens, tokens).tril().triu(1 - length).bool()
    assert torch.equal(bind(Causal() & Window(length=length), row, row).dense[0, 0], expected)


def test_a_missing_field_is_named():
    row = TokenPositions(torch.arange(3)[None])
    with pytest.raises(UsageError, match="documents="):
        bind(SameDocument(), row, row)
    with pytest.raises(UsageError, match="prefix="):
        bind(Prefix(), row, row)
