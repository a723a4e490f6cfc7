"""How many numbers a specification has, exactly, without a single one in memory."""

from collections import Counter
from dataclasses import fields, replace
from typing import Any

import torch
from torch import nn

from orrery.models.assemblies import AssemblySpec
from orrery.nn.spec import ModuleSpec
from orrery.nn.stack import Stack


def parameters(spec: AssemblySpec, *, trained: bool = False) -> int:
    """Count the parameters of a model, each storage once.

    A block that stands at many depths is built once and multiplied: 671 billion parameters take a second.

    Args:
        spec: a whole model.
        trained: leave out what no gradient changes (a router's correction).
    """
    stacks: dict[str, Any] = {
        f.name: getattr(spec, f.name) for f in fields(spec) if isinstance(getattr(spec, f.name), Stack.Spec)
    }
    thinned: dict[str, Any] = {name: _thinned(stack) for name, stack in stacks.items()}
    thin = replace(spec, **thinned)
    total = count(_empty(thin, spec.width), trained=trained)
    for stack in stacks.values():
        blocks = {id(block): block for block in stack.blocks}
        for key, times in Counter(id(block) for block in stack.blocks).items():
            if times > 1:
                total += (times - 1) * count(_empty(blocks[key], spec.width), trained=trained)
    return total


def count(model: nn.Module, *, trained: bool = False) -> int:
    """Count the parameters of a module, each storage once."""
    return sum(p.numel() for p in model.parameters() if p.requires_grad or not trained)


def _thinned(stack: Stack.Spec) -> Stack.Spec:
    """Return the stack with every block once."""
    blocks = tuple({id(block): block for block in stack.blocks}.values())
    return replace(stack, blocks=blocks, order=None)


def _empty(spec: ModuleSpec, width: int) -> nn.Module:
    with torch.device("meta"):
        return spec.build(width)
