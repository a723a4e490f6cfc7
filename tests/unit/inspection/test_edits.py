"""An edit receives the value and its key; what takes anything else is refused before the model runs."""

import functools
import math

import pytest
import torch
from torch import nn

from orrery.errors import UsageError
from orrery.inspection.recorder import Recorder
from orrery.inspection.trace import trace
from tiny_models import tiny

IDS = torch.randint(0, 250, (2, 11), generator=torch.Generator().manual_seed(0))


class Halve(nn.Module):
    def forward(self, value, key):
        return value / 2


class OneArgument(nn.Module):
    def forward(self, value):
        return value / 2


class Method:
    def halve(self, value, key):
        return value / 2


def scaled(value, key, factor=0.5):
    return value * factor


def by_name(value, key=""):
    return value * 0.5


def test_an_edit_receives_the_key_of_each_value_that_it_reaches():
    model, met = tiny("gpt2"), []

    def edit(value, key):
        met.append((key, tuple(value.shape)))
        return value * 0 if key.startswith("blocks.1.") else value

    traced = trace(model, IDS, edit={"blocks.*.feed_forward.added": edit})
    assert met == [(f"blocks.{depth}.feed_forward.added", (2, 11, 32)) for depth in range(2)]
    assert traced["blocks.0.feed_forward.added"].abs().max() > 0
    assert traced["blocks.1.feed_forward.added"].abs().max() == 0


def test_edits_of_one_key_follow_each_other():
    recorder = Recorder(edit={"a": lambda value, key: value + 1, "*": lambda value, key: value * 2})
    assert torch.equal(recorder("a", torch.ones(2)), torch.full((2,), 4.0))
    assert torch.equal(recorder("b", torch.ones(2)), torch.full((2,), 2.0))


@pytest.mark.parametrize("edit", [scaled, by_name, Halve(), Method().halve, functools.partial(scaled, factor=0.5)])
def test_what_takes_a_value_and_a_key_is_an_edit(edit):
    assert torch.equal(Recorder(edit={"a": edit})("a", torch.ones(2)), torch.full((2,), 0.5))


@pytest.mark.parametrize(
    "edit",
    [
        lambda value: value,
        lambda: None,
        lambda value, key, more: value,
        lambda value, *, key: value,
        lambda value, dim=0: value.sum(dim),  # the key would become a dimension
        OneArgument(),
        torch.zeros_like,  # says nothing of its arguments; a key would be its dtype
        torch.softmax,
        math.sqrt,
        nn.functional.gelu,
        torch.Tensor.double,
    ],
)
def test_what_takes_anything_else_is_refused_before_the_model_runs(edit):
    with pytest.raises(UsageError, match=r"edit of 'blocks\.0\.\*' does not take two arguments") as error:
        trace(tiny("gpt2"), IDS, edit={"blocks.0.*": edit})
    assert "lambda value, key:" in error.value.hint
