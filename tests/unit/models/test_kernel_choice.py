"""Which kernel can compute an architecture is told by its parts, and the kernel itself agrees."""

from typing import ClassVar

import pytest
import torch
from tests.goldens.cases import IMAGES

from orrery.errors import UsageError
from orrery.families import load_family, names
from orrery.kernels.processor import Processor
from orrery.laws.models import random_ids, spec_of, tiny
from orrery.models.kernel_choice import keeps_pattern
from orrery.nn.attention import stored_pattern as kept
from orrery.nn.attention.disentangled import DisentangledAttention
from orrery.nn.attention.kernels import eager
from orrery.nn.attention.operands import KeysValues, Operands
from orrery.nn.attention.stored_pattern import stored_pattern
from orrery.nn.attention.transformer_xl import ContentBias
from orrery.nn.masks import PLAIN_CAUSAL, BoundMask
from orrery.nn.positions.alibi import Alibi
from orrery.nn.positions.scheme import PositionSpec
from orrery.nn.spec import spec
from orrery.runs import building
from tiny_models import inputs_for


@spec
class SlopesThatLearn(PositionSpec):
    """A kind of position that no other file knows."""

    learns_bias: ClassVar[bool] = True

    def build(self, width):
        """Build nothing."""


def test_a_new_kind_says_itself_that_it_learns_a_bias():
    assert not keeps_pattern(SlopesThatLearn())
    assert keeps_pattern(Alibi.Spec(heads=2))
    terms = {"wanted": ContentBias.Spec(heads=2, head_width=4)}
    assert not keeps_pattern(DisentangledAttention.Spec(heads=2, head_width=4, terms=terms))


@pytest.mark.parametrize("family", sorted(set(names()) - set(IMAGES)))
def test_the_kernel_that_keeps_the_pattern_refuses_exactly_the_families_it_is_kept_from(family):
    module = load_family(family)
    able = keeps_pattern(module.spec(module.TINY))
    try:
        model = tiny(family, torch.float32)
        model.logits(*(inputs_for(model) if model.spec.compares else [random_ids(2, 5)]), kernel=stored_pattern)
    except UsageError as error:
        assert not able, error  # noqa: PT017 - most families raise nothing
    else:
        assert able


@pytest.mark.parametrize(("vendor", "narrow"), [("GenuineIntel", False), ("AuthenticAMD", True)])
def test_a_training_keeps_the_pattern_where_that_is_faster(vendor, narrow, monkeypatch):
    """By the processor's maker for rows with padding in float32, and always for whole causal rows or under autocast."""
    monkeypatch.setattr(building, "this_processor", lambda: Processor(vendor, frozenset({"avx512f"})))
    kernel, used = building.training_kernel(spec_of("llama"), "cpu"), []
    for name in ("sdpa", "stored_pattern"):
        inner = getattr(kept, name)
        monkeypatch.setattr(kept, name, lambda *given, name=name, inner=inner: (used.append(name), inner(*given))[1])
    q = torch.randn(2, 3, 5, 4)
    asked = (q, KeysValues(q, q), Operands(mask=PLAIN_CAUSAL, scale=0.5))
    padded = Operands(mask=BoundMask(torch.ones(2, 1, 5, 5, dtype=torch.bool), is_causal=False), scale=0.5)
    kernel(q, KeysValues(q, q), padded)
    plain = kernel(*asked)
    with torch.autocast("cpu", torch.bfloat16):
        rounded = kernel(*asked)
    assert used == ([] if narrow else ["sdpa", "stored_pattern", "stored_pattern"])
    assert (kernel is stored_pattern) == narrow
    assert (plain.dtype, rounded.dtype) == (torch.float32, torch.bfloat16)
    assert torch.allclose(plain, eager(*asked), atol=1e-6)
