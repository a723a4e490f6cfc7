"""What each operation makes of a tensor."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from orrery.errors import UsageError
from orrery.inspection.interventions.intervention import EVERY, Intervention
from orrery.inspection.interventions.places import ComputedWindow, axes_of, chosen, pairs
from orrery.inspection.recorded import Recorded

Source = Recorded | Tensor
"""What an intervention takes from: a trace, a mapping of tensors, or a vector."""

Make = Callable[[Intervention, str, Tensor, Mapping[str, Source], ComputedWindow], Tensor]


def apply(edit: Intervention, key: str, value: Tensor, sources: Mapping[str, Source], window: ComputedWindow) -> Tensor:
    """Return the tensor with the named part changed; all other numbers are the same bits.

    Raises:
        UsageError: a place that the tensor does not have, or a source that does not fit.
    """
    here = chosen(edit, key, value, window)
    if here is None:
        return value
    if edit.op in ("zero", "scale", "set") and key.endswith(".scores"):
        here = here & ~value.isneginf()  # what the mask hides stays hidden: a score of zero would show the future
    after = torch.where(here, _MAKE[edit.op](edit, key, value, sources, window), value)
    if edit.op == "mask":
        _check_rows(key, value, after)
    return after


def _zero(edit: Intervention, key: str, value: Tensor, sources: Mapping[str, Source], window: ComputedWindow) -> Tensor:
    return torch.zeros_like(value)


def _mean(edit: Intervention, key: str, value: Tensor, sources: Mapping[str, Source], window: ComputedWindow) -> Tensor:
    axes = axes_of(key, value)
    if axes.position is None or axes.channel is None:
        raise UsageError(f"{key} has no mean over positions: it is {list(value.shape)}", "name a tensor with channels")
    if edit.source is None:
        return value.mean(axes.position, keepdim=True)
    other = _tensor(edit, key, value, sources).mean(axes.position, keepdim=True)
    _check_fits(edit, key, value, other, skip=axes.position)
    return other


def _scale(
    edit: Intervention, key: str, value: Tensor, sources: Mapping[str, Source], window: ComputedWindow
) -> Tensor:
    assert edit.scale is not None
    return value * edit.scale


def _set(edit: Intervention, key: str, value: Tensor, sources: Mapping[str, Source], window: ComputedWindow) -> Tensor:
    assert edit.value is not None
    return torch.full_like(value, edit.value)


def _add(edit: Intervention, key: str, value: Tensor, sources: Mapping[str, Source], window: ComputedWindow) -> Tensor:
    axes = axes_of(key, value)
    if axes.channel is None:
        raise UsageError(f"{key} has no channels that a vector could be added to", "edit what is mixed by its pattern")
    times = 1.0 if edit.scale is None else edit.scale
    if edit.source is not None:
        return value + times * _standing(edit, key, value, sources)
    vector_C = _vector(edit, key, value, sources)
    if len(vector_C) != value.shape[axes.channel]:
        raise UsageError(
            f"a vector of {len(vector_C)} numbers is added to {key}, which has {value.shape[axes.channel]} channels",
            "give one number for each channel",
        )
    return value + times * vector_C


def _vector(edit: Intervention, key: str, value: Tensor, sources: Mapping[str, Source]) -> Tensor:
    vector = edit.vector
    if not isinstance(vector, str):
        return torch.tensor(vector, dtype=torch.float64).to(value)
    vector_D = _source(edit.at, vector, sources)
    if not isinstance(vector_D, Tensor) or vector_D.dim() != 1:
        raise UsageError(f"{vector!r} is no vector", "give a tensor of one dimension under this name")
    return vector_D.detach().to(value)


def _standing(edit: Intervention, key: str, value: Tensor, sources: Mapping[str, Source]) -> Tensor:
    """Return what stands in the other run: at one position, for all of this one; else position by position."""
    other, axis, there = _tensor(edit, key, value, sources), axes_of(key, value).position, edit.source_position
    if axis is None or there is None:
        _check_fits(edit, key, value, other)
        return other
    assert isinstance(there, int)
    length = other.shape[axis]
    if not -length <= there < length:
        message = f"position {there} of {key} is added from {edit.source!r}, which has {length} positions"
        raise UsageError(message, f"they are 0 to {length - 1}")
    _check_fits(edit, key, value, other, skip=axis)
    return other.narrow(axis, there % length, 1)


def _patch(
    edit: Intervention, key: str, value: Tensor, sources: Mapping[str, Source], window: ComputedWindow
) -> Tensor:
    other, axis = _tensor(edit, key, value, sources), axes_of(key, value).position
    if axis is None:
        _check_fits(edit, key, value, other)
        return other.expand_as(value)
    _check_fits(edit, key, value, other, skip=axis)
    length = other.shape[axis]
    if edit.position == EVERY and window.whole and length != value.shape[axis]:
        message = f"{edit.source!r} has {length} positions of {key}, and this run has {value.shape[axis]}"
        raise UsageError(message, "patch texts of one length, or name positions and from_position")
    places = pairs(edit, key, value, window)
    for _, there in places:
        if not -length <= there < length:
            message = f"position {there} of {key} is patched from {edit.source!r}, which has {length} positions"
            raise UsageError(message, f"they are 0 to {length - 1}")
    here_N, there_N = (
        torch.tensor(index, device=value.device)
        for index in zip(*((here, there % length) for here, there in places), strict=True)
    )
    taken = other.expand(len(value), *other.shape[1:]).index_select(axis, there_N)
    return value.index_copy(axis, here_N, taken)


def _mask(edit: Intervention, key: str, value: Tensor, sources: Mapping[str, Source], window: ComputedWindow) -> Tensor:
    if not key.endswith(".scores"):
        raise UsageError(f"an edge is masked at scores, not at {key}", f"name {key.rpartition('.')[0]}.scores")
    return torch.full_like(value, float("-inf"))


_MAKE: Mapping[str, Make] = {
    "zero": _zero,
    "mean": _mean,
    "scale": _scale,
    "set": _set,
    "add": _add,
    "patch": _patch,
    "mask": _mask,
}


def _check_rows(key: str, before: Tensor, after: Tensor) -> None:
    """Refuse to hide the last key that a query sees: the softmax of nothing is no number."""
    empty = after.isneginf().all(-1) & ~before.isneginf().all(-1)
    if bool(empty.any()):
        _, head, query = empty.nonzero()[0].tolist()
        message = f"query {query} of head {head} would see nothing at {key}"
        raise UsageError(message, "leave it one key, or set the head's mixed to zero")


def _source(at: str, name: str, sources: Mapping[str, Any]) -> Source:
    if name not in sources:
        have = f"there is: {', '.join(sources)}" if sources else "give it: edit({'NAME': trace})"
        raise UsageError(f"the edit of {at} takes from {name!r}, which is not given", have)
    source: Source = sources[name]
    return source


def _tensor(edit: Intervention, key: str, value: Tensor, sources: Mapping[str, Source]) -> Tensor:
    """Return the other run's tensor of this key."""
    assert edit.source is not None
    source = _source(edit.at, edit.source, sources)
    if isinstance(source, Tensor):
        raise UsageError(
            f"{edit.source!r} is a tensor, and {edit.op} takes from a trace", "give a trace under this name"
        )
    if key not in source:
        raise UsageError(f"{edit.source!r} has not kept {key}", f"make it with keep=[{key!r}], or without keep")
    return source[key].detach().to(value)


def _check_fits(edit: Intervention, key: str, value: Tensor, other: Tensor, skip: int = -1) -> None:
    shapes = [[size for axis, size in enumerate(x.shape) if axis not in (0, skip)] for x in (value, other)]
    if shapes[0] != shapes[1] or len(other) not in (1, len(value)):
        message = f"{key} is {list(value.shape)}, and {list(other.shape)} in {edit.source!r}"
        raise UsageError(
            message, "take from a run of the same model, of one row or as many, and of one length where it is attention"
        )
