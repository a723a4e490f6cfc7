"""What families of every kind share: how the branches of a block are put together, and biases that come together."""

from collections.abc import Mapping
from typing import Any

from orrery.nn.attention.multihead import Biases
from orrery.nn.block import Block
from orrery.nn.residual import Residual, Sum
from orrery.nn.spec import ModuleSpec


def biases(on: bool = True) -> Biases:
    """Return a bias on all four projections of an attention, or on none."""
    return Biases(q=on, k=on, v=on, out=on)


def sequential(branches: Mapping[str, ModuleSpec], **fields: Any) -> Block.Spec:
    """Return a block of one residual after the other, a branch each; the keywords are fields of every residual."""
    return Block.Spec(residuals={name: Residual.Spec(branch=branch, **fields) for name, branch in branches.items()})


def parallel(branches: Mapping[str, ModuleSpec], **fields: Any) -> Block.Spec:
    """Return a block of one residual, whose branches read it side by side; the keywords are fields of the residual."""
    return Block.Spec(residuals={"parallel": Residual.Spec(branch=Sum.Spec(branches=branches), **fields)})
