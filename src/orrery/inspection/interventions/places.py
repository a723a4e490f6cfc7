"""Places: which axis of a tensor is which, by its key, and which part of it an intervention names."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool
from torch import Tensor

from orrery.errors import UsageError
from orrery.inspection.interventions.intervention import EVERY, Intervention, Places


@dataclass(frozen=True)
class Axes:
    """The axes of a tensor that have places of their own; ``None`` where it has no such axis."""

    position: int | None = None
    head: int | None = None
    key: int | None = None
    channel: int | None = None


@dataclass(frozen=True)
class ComputedWindow:
    """The part of a text that a call computes.

    Attributes:
        start: the position of the call's first token.
        whole: whether the call computes the whole text, so that a place beyond it is a mistake and not yet to come.
    """

    start: int = 0
    whole: bool = True


WHOLE = ComputedWindow()
_STORED = ("k", "v")
"""Names of tensors that show everything which can be looked at, earlier tokens too."""


def axes_of(key: str, value: Tensor) -> Axes:
    """Return the axes of ``[B, H, L, C]``, of scores and patterns ``[B, H, L, S]``, of ``[B, L, D]`` or ``[B, V]``."""
    name, dimensions = key.rpartition(".")[2], value.dim()
    if dimensions == 4:
        return Axes(2, 1, channel=3) if name in (*_STORED, "q", "mixed", "gate") else Axes(2, 1, key=3)
    return Axes(1, channel=2) if dimensions == 3 else Axes(channel=dimensions - 1)


def chosen(edit: Intervention, key: str, value: Tensor, window: ComputedWindow) -> Bool[Tensor, "..."] | None:
    """Return which numbers of a tensor an intervention names, in a shape that broadcasts; nothing where it names none.

    Raises:
        UsageError: a place that the tensor does not have.
    """
    axes, chosen = axes_of(key, value), torch.ones((), dtype=torch.bool, device=value.device)
    for what, axis in (("head", axes.head), ("channel", axes.channel), ("key", axes.key), ("position", axes.position)):
        places: Places | str | None = getattr(edit, what)
        if places is None or places == EVERY:
            continue
        if axis is None:
            raise UsageError(f"{key} has no {what}s to choose from: it is {list(value.shape)}", f"leave {what} out")
        assert not isinstance(places, str)
        named = _named(places, what, key, value.shape[axis], window)
        if not named:
            return None
        along = torch.zeros(value.shape[axis], dtype=torch.bool, device=value.device)
        along[named] = True
        chosen = chosen & along.view([-1 if n == axis else 1 for n in range(value.dim())])
    return chosen


def pairs(edit: Intervention, key: str, value: Tensor, window: ComputedWindow) -> list[tuple[int, int]]:
    """Return the named indices on the axis of positions, each with the position that it is taken from elsewhere."""
    axis = axes_of(key, value).position
    assert axis is not None
    size, begin = value.shape[axis], first(key, "position", window)
    if edit.position == EVERY:
        return [(place, begin + place) for place in range(size)]
    here = _tuple(edit.position)
    there = here if edit.source_position is None else _tuple(edit.source_position)
    places = [(_named(place, "position", key, size, window), other) for place, other in zip(here, there, strict=True)]
    return [(indices[0], other) for indices, other in places if indices]


def first(key: str, what: str, window: ComputedWindow) -> int:
    """Return the place in the text of the first row on an axis: keys and values begin with the text."""
    return 0 if what == "key" or key.rpartition(".")[2] in _STORED else window.start


def _tuple(places: Places) -> tuple[int, ...]:
    return places if isinstance(places, tuple) else (places,)


def _named(places: Places, what: str, key: str, size: int, window: ComputedWindow) -> list[int]:
    """Return places as indices of an axis; those that another call computes are left out."""
    listed = _tuple(places)
    if what not in ("position", "key") or window.whole:
        for place in listed:
            if not -size <= place < size:
                raise UsageError(f"{key} has {size} {what}s, and {what} {place} is named", f"they are 0 to {size - 1}")
        return [place % size for place in listed]
    begin = first(key, what, window)
    return [place - begin for place in listed if begin <= place < begin + size]
