"""The numbers that a model consists of, counted without a single one in memory."""

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import Any

import torch
from torch import nn

from orrery.models.decoder import Decoder
from orrery.models.encoder import Encoder
from orrery.models.encoder_decoder import EncoderDecoder
from orrery.nn.feedforward.moe import MoE
from orrery.nn.spec import ModuleSpec
from orrery.nn.stack import Stack


@dataclass(frozen=True)
class Parameters:
    """How many parameters a model has, each storage once.

    Attributes:
        trained: those that a gradient changes.
        fixed: those that another rule moves (the corrections of a sigmoid router).
        active: those of both that one token meets: all but the experts that it is not sent to. Embedding tables
            are counted as a whole, as reports on such models do.
    """

    trained: int
    fixed: int
    active: int


def parameters(spec: Decoder.Spec | Encoder.Spec | EncoderDecoder.Spec) -> Parameters:
    """Count the parameters of a model.

    Blocks that are alike are built once and counted as often as they stand there: one of a mixture is thousands of
    modules.
    """
    stacks = {field.name: getattr(spec, field.name) for field in fields(spec)}
    stacks = {name: stack for name, stack in stacks.items() if isinstance(stack, Stack.Spec)}
    emptied: dict[str, Any] = {name: replace(stack, blocks=()) for name, stack in stacks.items()}
    found = [_counted(replace(spec, **emptied), 0)]
    for stack in stacks.values():
        kinds: list[tuple[ModuleSpec, Parameters]] = []
        for block in stack.blocks:
            known = next((count for kind, count in kinds if kind == block), None)
            found.append(known or _counted(block, spec.width))
            kinds += [] if known else [(block, found[-1])]
    return Parameters(*(sum(getattr(part, field.name) for part in found) for field in fields(Parameters)))


def active_parameters(spec: Decoder.Spec | Encoder.Spec | EncoderDecoder.Spec) -> int:
    """Return how many parameters one token meets: all but the experts that it is not sent to."""
    return parameters(spec).active


def _counted(spec: ModuleSpec, width: int) -> Parameters:
    with torch.device("meta"):
        part = spec.build(width)
    everything = list(part.parameters())
    trained = _numbers(parameter for parameter in everything if parameter.requires_grad)
    idle = sum(_idle(module) for module in part.modules() if isinstance(module, MoE))
    return Parameters(trained, _numbers(everything) - trained, _numbers(everything) - idle)


def _idle(mixture: MoE) -> int:
    """Count the parameters of the experts that a token is not sent to."""
    return (len(mixture.experts) - mixture.chosen) * _numbers(mixture.experts[0].parameters())


def _numbers(tensors: Iterable[nn.Parameter]) -> int:
    return sum(tensor.numel() for tensor in tensors)
