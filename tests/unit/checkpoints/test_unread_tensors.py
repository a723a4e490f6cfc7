"""What published files hold and no model needs: it may be there or not, and is not written."""

import pytest
import torch

from orrery.checkpoints.rules import rename, to_ours, to_theirs, unread
from orrery.errors import ModelFileError

RULES = (rename("layer.{i}.w", "blocks.{i}.w"), unread("layer.{i}.stale"))
WEIGHTS = {"layer.0.w": torch.ones(2), "layer.1.w": torch.zeros(2)}
SHAPES = {"blocks.0.w": torch.Size([2]), "blocks.1.w": torch.Size([2])}


@pytest.mark.parametrize("more", [{}, {"layer.1.stale": torch.ones(3)}], ids=["absent", "there"])
def test_an_unread_tensor_may_be_there_or_not(more):
    ours = to_ours({**WEIGHTS, **more}, RULES, SHAPES)
    assert ours.keys() == SHAPES.keys()
    assert to_theirs(ours, RULES).keys() == WEIGHTS.keys()


def test_any_other_is_refused_by_name():
    with pytest.raises(ModelFileError, match=r"1 unexpected: layer\.x\.stale"):
        to_ours({**WEIGHTS, "layer.x.stale": torch.ones(3)}, RULES, SHAPES)
