"""A model with the weights of another, and another scale of attention or base of rotary positions."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from fnmatch import fnmatchcase

from torch import nn

from orrery.errors import UsageError
from orrery.inspection.interventions.intervention import Intervention
from orrery.models.model import Model
from orrery.nn.attention.differential import DifferentialAttention
from orrery.nn.attention.disentangled import DisentangledAttention
from orrery.nn.attention.latent import LatentAttention
from orrery.nn.attention.multihead import MultiHeadAttention
from orrery.nn.positions.rotary import Rotary
from orrery.nn.spec import Value
from orrery.nn.stack import Stack

Named = Iterator[tuple[str, nn.Module]]
SCALED = (MultiHeadAttention, LatentAttention, DisentangledAttention, DifferentialAttention)
"""The attentions that multiply their scores by a number."""


def configured(model: Model, edits: Sequence[Intervention]) -> Model:
    """Return a model whose scales and bases are those that edits name; it computes with the weights of the given one.

    Without such edits it is the given one.

    Raises:
        UsageError: an edit reaches nothing, or a block that stands at several depths at some of them alone.
    """
    named = [edit for edit in edits if edit.op in _CHANGE]
    if not named:
        return model
    other = _with_its_weights(model)
    for edit in named:
        parts, change = _CHANGE[edit.op]
        for part in _reached(edit, list(parts(other))):
            change(part, edit)
    return other


def attentions(model: nn.Module) -> Named:
    """Yield every attention that has a scale, by the key of its tensors: ``blocks.0.attention``."""
    for stack in _stacks(model):
        for depth, number in enumerate(stack.order):
            for part in stack.blocks[number].modules():
                if isinstance(part, SCALED):
                    yield f"{stack.path}blocks.{depth}.{part.role}", part


def rotations(model: nn.Module) -> Named:
    """Yield every rotary scheme, ``positions.NAME`` of the stack that it stands in."""
    for stack in _stacks(model):
        for name, scheme in stack.positions.items():
            for part in scheme.modules():
                if isinstance(part, Rotary):
                    yield f"{stack.path}positions.{name}", part


def _stacks(model: nn.Module) -> list[Stack]:
    return [part for part in model.modules() if isinstance(part, Stack)]


def _with_its_weights(model: Model) -> Model:
    """Return a copy of the modules around the same tensors."""
    held: list[object] = [*model.parameters(), *model.buffers()]
    held += [value for part in model.modules() for value in vars(part).values() if isinstance(value, Value)]
    return deepcopy(model, {id(one): one for one in held})


def _reached(edit: Intervention, parts: Sequence[tuple[str, nn.Module]]) -> list[nn.Module]:
    """Return the modules that an edit names, each once."""
    names: dict[nn.Module, list[str]] = {}
    for name, part in parts:
        names.setdefault(part, []).append(name)
    reached = []
    for part, known in names.items():
        named = [fnmatchcase(name, edit.at) for name in known]
        if any(named) and not all(named):
            raise UsageError(f"{edit.at} names one depth of a block that stands at {', '.join(known)}", "name them all")
        reached += [part] if all(named) else []
    if not reached:
        there = ", ".join(dict.fromkeys(name for name, _ in parts)) or _NOTHING[edit.op]
        raise UsageError(f"{edit.op} reaches nothing at {edit.at!r}", f"there is: {there}")
    return reached


def _rescale(attention: nn.Module, edit: Intervention) -> None:
    assert edit.scale is not None
    attention.scale = attention.scale * edit.scale  # type: ignore[assignment, operator]


def _rebase(rotary: nn.Module, edit: Intervention) -> None:
    assert edit.value is not None
    rotary.base = edit.value  # type: ignore[assignment]


_CHANGE: Mapping[str, tuple[Callable[[nn.Module], Named], Callable[[nn.Module, Intervention], None]]] = {
    "rescale": (attentions, _rescale),
    "rebase": (rotations, _rebase),
}
_NOTHING = {"rescale": "no attention with a scale in this model", "rebase": "no rotary positions in this model"}
