"""Numbers to be learned in any unit: a head learns them about as large as 1, and answers in their own unit."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from orrery.errors import DataError
from orrery.models.model import ModelSpec
from orrery.nn.heads import InUnits, SequenceHead
from orrery.nn.residual import Identity


def unit_of(targets: Sequence[float], *, centred: bool) -> InUnits.Spec:
    """Return the mean and the standard deviation of numbers, or 0 and the root of the mean square.

    Args:
        targets: the numbers of training.
        centred: whether the head has a bias, which takes the mean when the model is written.

    Raises:
        DataError: they are so large that they have none.
    """
    try:
        centre = math.fsum(targets) / len(targets) if centred else 0.0
        spread = math.sqrt(math.fsum((target - centre) ** 2 for target in targets) / len(targets))
    except OverflowError:
        spread = math.inf
    if not spread < 1e30:
        raise DataError(f"numbers up to {max(map(abs, targets)):g} cannot be learned", "write them in a larger unit")
    return InUnits.Spec(centre=centre, spread=spread if spread > 0 else 1.0)


def with_unit(spec: ModelSpec, name: str | None, targets: Sequence[float]) -> ModelSpec:
    """Return an architecture whose head of this name gives numbers in the unit of the targets, where there are any."""
    head = spec.heads.get(name) if name is not None else None
    if not targets or not isinstance(head, SequenceHead.Spec) or head.labels != 1:
        return spec
    return _with_head(spec, str(name), replace(head, unit=unit_of(targets, centred=head.bias)))


@torch.no_grad()
def keep_answers(model: nn.Module, before: ModelSpec, renewed: Sequence[str] = ()) -> None:
    """Change the last maps of heads that are loaded so that they answer as they did before the unit changed.

    Those whose names begin with one of ``renewed`` are not loaded.

    With ``f = s0 (W x + b) + c0`` in the old unit, ``s1 (W' x + b') + c1`` is the same for ``W' = W s0 / s1`` and
    ``b' = (b s0 + c0 - c1) / s1``.
    """
    headed: Any = model
    for name, head in headed.heads.items():
        fresh = f"heads.{name}.labels.".startswith(tuple(renewed))
        if isinstance(head, SequenceHead) and name in before.heads and not fresh:
            (c0, s0), (c1, s1) = _unit(before.heads[name]), _unit(headed.spec.heads[name])
            if (c0, s0) != (c1, s1):
                head.labels.weight.mul_(s0 / s1)
                if head.labels.bias is not None:
                    head.labels.bias.mul_(s0).add_(c0 - c1).div_(s1)


@contextmanager
def in_own_units(model: nn.Module) -> Iterator[None]:
    """Let the heads of a model hold their unit in their last map, as published layouts have it, as long as this lasts.

    ``s (W x + b) + c = (s W) x + (s b + c)``.
    """
    headed: Any = model
    spec, heads = headed.spec, {}
    for name, head in headed.heads.items():
        centre, spread = _unit(spec.heads[name])
        if isinstance(head, SequenceHead) and (centre, spread) != (0.0, 1.0):
            heads[name] = head.labels, head.unit
            head.labels, head.unit = _folded(head.labels, centre, spread), Identity()
            headed.spec = _with_head(headed.spec, name, replace(headed.spec.heads[name], unit=Identity.Spec()))
    try:
        yield
    finally:
        headed.spec = spec
        for name, (labels, unit) in heads.items():
            headed.heads[name].labels, headed.heads[name].unit = labels, unit


def written_in_own_units(write: Callable[[Any, Path], None]) -> Callable[[Any, Path], None]:
    """Return what writes a model as ``write`` does, its heads without a unit of their own."""

    def written(model: Any, folder: Path) -> None:
        with in_own_units(model):
            write(model, folder)

    return written


@torch.no_grad()
def _folded(labels: nn.Linear, centre: float, spread: float) -> nn.Linear:
    """Return a map that gives ``spread * labels(x) + centre``, computed in float64."""
    folded = nn.utils.skip_init(
        nn.Linear,
        labels.in_features,
        labels.out_features,
        bias=labels.bias is not None,
        device=labels.weight.device,
        dtype=labels.weight.dtype,
    )
    folded.weight.copy_(labels.weight.double() * spread)
    if labels.bias is not None:
        folded.bias.copy_(labels.bias.double() * spread + centre)
    return folded


def _unit(head: Any) -> tuple[float, float]:
    """Return centre and spread of the numbers that a head gives: 0 and 1 where it has no unit."""
    unit = getattr(head, "unit", None)
    return (unit.centre, unit.spread) if isinstance(unit, InUnits.Spec) else (0.0, 1.0)


def _with_head(spec: ModelSpec, name: str, head: SequenceHead.Spec) -> ModelSpec:
    own: Any = spec
    return replace(own, heads={**own.heads, name: head})
