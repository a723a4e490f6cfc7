"""How many numbers a specification has, exactly, without a single one in memory."""

from torch import nn

from orrery.models.assemblies import AssemblySpec
from orrery.models.condensed import condense


def parameters(spec: AssemblySpec, *, trained: bool = False) -> int:
    """Count the parameters of a model, each storage once: 671 billion take a second.

    Args:
        spec: a whole model.
        trained: leave out what no gradient changes (a router's correction).
    """
    return condense(spec).parameters(trained=trained)


def count(model: nn.Module, *, trained: bool = False) -> int:
    """Count the parameters of a module, each storage once."""
    return sum(p.numel() for p in model.parameters() if p.requires_grad or not trained)
