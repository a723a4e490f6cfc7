"""Which kernel can compute an architecture is told by its parts, and the kernel itself agrees."""

from typing import ClassVar

import pytest
import torch
from tests.goldens.cases import IMAGES

from orrery.errors import UsageError
from orrery.families import load_family, names
from orrery.laws.models import random_ids, tiny
from orrery.models.kernel_choice import keeps_pattern
from orrery.nn.attention.disentangled import DisentangledAttention
from orrery.nn.attention.stored_pattern import stored_pattern
from orrery.nn.attention.transformer_xl import ContentBias
from orrery.nn.positions.alibi import Alibi
from orrery.nn.positions.scheme import PositionSpec
from orrery.nn.spec import spec
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
