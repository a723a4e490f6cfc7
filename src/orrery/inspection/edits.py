"""Edits: functions that put another tensor in the place of one inside a call."""

import inspect
from collections.abc import Callable, Mapping

from torch import Tensor, nn

from orrery.errors import UsageError

Edit = Callable[[Tensor, str], Tensor]
"""``edit(value, key)``: the tensor and its key to the tensor that takes its place, of one shape, dtype and device."""

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def checked_edits(edits: Mapping[str, Edit] | None) -> dict[str, Edit]:
    """Return the edits, each of which takes a value and its key.

    Raises:
        UsageError: one takes another number of arguments, or does not say how many it takes.
    """
    for pattern, edit in (edits or {}).items():
        if not _takes_value_and_key(edit):
            raise UsageError(
                f"the edit of {pattern!r} does not take two arguments, the value and its key",
                "write it as: lambda value, key: value * 0",
            )
    return dict(edits or {})


def _takes_value_and_key(edit: Edit) -> bool:
    """Say whether two required positional arguments, or any number of them, are what a function takes.

    A second argument with a default is none of ours: the key would silently become a size or a dtype.
    """
    try:
        signature = inspect.signature(edit.forward if isinstance(edit, nn.Module) else edit)
        signature.bind(None, None)
    except (TypeError, ValueError):  # ValueError: a function written in C++, such as torch's own
        return False
    given = [p for p in signature.parameters.values() if p.kind in _POSITIONAL][:2]
    return all(p.default is inspect.Parameter.empty or p.name == "key" for p in given[1:])


def same_kind(key: str, before: Tensor, after: Tensor) -> Tensor:
    """Return the edited tensor if it fits in the place of the old one.

    Raises:
        UsageError: its shape, dtype or device is another.
    """
    kinds = [(tuple(x.shape), x.dtype, x.device) for x in (before, after)]
    if kinds[0] != kinds[1]:
        raise UsageError(
            f"the edit of {key} returned {kinds[1]}, the tensor was {kinds[0]}",
            "an edit keeps shape, dtype and device",
        )
    return after
