"""Edits of scale and base against transformers, whose own modules are configured so: float64, random parameters."""

import pytest
import torch

from orrery.inspection.trace import trace
from tests.parity.helper import pair
from tests.parity.test_llama import TINY

IDS = torch.randint(3, 97, (1, 13), generator=torch.Generator().manual_seed(1))
FACTOR, BASE = 0.37, 321.0
FAMILIES = {"llama": {}, "gemma2": {"head_dim": 8, "query_pre_attn_scalar": 16}, "olmo": {}, "qwen3": {"head_dim": 8}}


def logits(kind, factor=1.0, **rope):
    """Return the reference's logits, where every attention multiplies its scores by ``factor`` more."""
    made = pair(kind, **TINY, **FAMILIES[kind], **rope)
    for layer in made.theirs.model.layers:
        layer.self_attn.scaling *= factor
    with torch.no_grad():
        return made.reference(IDS).logits, made.ours


@pytest.mark.parametrize("kind", FAMILIES)
def test_logits_are_those_of_transformers_configured_so(kind):
    plain, ours = logits(kind)
    inside = trace(ours, IDS)
    assert float((inside.logits - plain).abs().max()) < 1e-9
    rope = {"rope_parameters": {"rope_type": "default", "rope_theta": BASE}}
    for edits, reference in (
        (inside.edit().rescale("blocks.*.attention", FACTOR), logits(kind, FACTOR)[0]),
        (inside.edit().rebase("positions.*", BASE), logits(kind, **rope)[0]),
        (
            inside.edit().rescale("blocks.*.attention", FACTOR).rebase("positions.*", BASE),
            logits(kind, FACTOR, **rope)[0],
        ),
    ):
        assert float((edits.run().logits - reference).abs().max()) < 1e-9
        assert float((inside.logits - reference).abs().max()) > 1e-4
        wrong = logits(kind, 1.01 * FACTOR, rope_parameters={"rope_type": "default", "rope_theta": 1.01 * BASE})[0]
        assert float((edits.run().logits - wrong).abs().max()) > 1e-6
