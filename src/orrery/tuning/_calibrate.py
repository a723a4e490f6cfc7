"""Whole numbers chosen for a text: a model reads it, and each matrix is rounded for the inputs that it got."""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any

import torch
from torch import Tensor, nn

from orrery.errors import UsageError
from orrery.models.model import Model
from orrery.tuning._gptq import solved
from orrery.tuning._linear import TransformedLinear, targeted
from orrery.tuning._whole_numbers import written_out
from orrery.tuning.quantise import Quantise

MOMENTS = 1 << 30
"""Bytes of second moments that are held at once; the text is read once for so many matrices."""

Linears = Mapping[str, nn.Linear | TransformedLinear]


@torch.no_grad()
def apply_calibrated(
    transform: Quantise,
    model: Model,
    read: Callable[[], Any],
    say: Callable[[str], None] = lambda line: None,
) -> Model:
    """Store each target of a transform in four-bit numbers that are chosen for a text, in place.

    Matrices are rounded in the order of the model, in turns. In each turn the model reads the text with all earlier
    ones rounded already, so that later ones see what they will be given.

    Args:
        transform: with four bits.
        model: changed in place, also where ``read`` ends in an error.
        read: lets the model read the text; called once a turn.
        say: told which turn it is.

    Raises:
        UsageError: the bits are not four, and whatever ``transform.apply`` refuses.
    """
    if transform.bits != 4:
        raise UsageError(f"{transform.bits} bits are not chosen for a text", "take bits=4, or leave the text away")
    linears = targeted(model, transform.targets, transform.leave)
    groups = {name: transform.group_for(name, linear) for name, linear in linears.items()}
    turns, rounded = _turns(linears), dict[str, tuple[Tensor, Tensor]]()
    for number, turn in enumerate(turns, 1):
        say(f"reading the text, {number} of {len(turns)}")
        moments = _moments(turn, read)
        for name, linear in turn.items():
            say(f"rounding {name}")
            rounded[name] = solved(linear.weight.detach(), moments.pop(name), groups[name])
            linear.weight.copy_(written_out(*rounded[name]))
    transform.apply(model)
    for name, (steps, scale) in rounded.items():
        stored = model.get_submodule(name)
        stored.get_parameter("weight").copy_(steps)
        stored.get_parameter("weight_scale").copy_(scale)
    return model


def _turns(linears: Linears) -> list[dict[str, nn.Linear | TransformedLinear]]:
    """Return the linears in their order, as many together as their moments allow."""
    turns, left = list[dict[str, nn.Linear | TransformedLinear]](), 0
    for name, linear in linears.items():
        size = 4 * linear.in_features**2
        if not turns or size > left:
            turns.append({})
            left = MOMENTS
        turns[-1][name] = linear
        left -= size
    return turns


def _moments(linears: Linears, read: Callable[[], Any]) -> dict[str, Tensor]:
    """Return by name ``sum x x^T`` over the inputs that each linear gets while a text is read."""
    moments = {name: torch.zeros(linear.in_features, linear.in_features) for name, linear in linears.items()}

    def watch(name: str) -> Callable[[nn.Module, tuple[Tensor, ...]], None]:
        def add(module: nn.Module, arguments: tuple[Tensor, ...]) -> None:
            x = arguments[0].detach().reshape(-1, arguments[0].shape[-1]).float()
            moments[name].addmm_(x.T, x)

        return add

    with ExitStack() as held:
        for name, linear in linears.items():
            held.callback(linear.register_forward_pre_hook(watch(name)).remove)
        read()
    return moments
