"""The laws with their models on a GPU, which is simulated: every tensor that a model meets has to be beside it."""

import pytest
import torch
from torch import nn

from orrery.laws.evidence import CannotRunError
from orrery.laws.place import on_device
from orrery.laws.registry import CHECKS
from orrery.nn.cross_entropy import in_pieces
from simulated_card import CARD, simulated_card

FAMILIES = ("gpt2", "bert", "t5", "lstm")
"""A decoder, an encoder, one that reads and writes, a recurrence: the kinds of calls and of caches."""


OF_FAMILIES = [check for check in CHECKS if check.per == "family" and check.default]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(
    "check", [check for check in CHECKS if check.per == "family" and check.default], ids=lambda c: c.name
)
def test_a_law_holds_on_a_card(check, family):
    with simulated_card(), on_device(str(CARD)):
        try:
            wrong = [one for one in check.run(family) if not one.passed]
        except CannotRunError:
            return
    assert not wrong


def test_a_tensor_that_stays_on_the_host_is_refused():
    class Left(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight, self.left = nn.Parameter(torch.ones(3)), torch.ones(3)

        def forward(self):
            return self.weight * self.left

    with simulated_card():
        model = Left().to("cuda")
        with pytest.raises(RuntimeError, match="on the same device"):
            model()
        model.left = model.left.to("cuda")
        assert model().sum().item() == 3.0
        model().sum().backward()
        assert model.weight.grad.device == CARD
    assert not torch.cuda.is_available()


def test_more_logits_are_held_at_once_on_a_card():
    head, targets = nn.Linear(4, 2**15, bias=False), torch.zeros(1000, dtype=torch.long)
    x = torch.randn(1000, 4)
    assert [len(rows) for rows, _ in in_pieces(head, x, targets)] == [128] * 7 + [104]
    with simulated_card():
        pieces = list(in_pieces(nn.Linear(4, 2**15, bias=False).to("cuda"), x.to("cuda"), targets.to("cuda")))
    assert [len(rows) for rows, _ in pieces] == [1000]
