"""Whether a tree of specs is a model that can be built: whole, with blocks, with numbers that mean something."""

import dataclasses
import functools
import math
import types
import typing
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from orrery.errors import ModelFileError, OrreryError
from orrery.models.model import ModelSpec
from orrery.nn.spec import ModuleSpec, Value, traverse
from orrery.nn.stack import Stack

_UNBUILDABLE = (TypeError, ValueError, ArithmeticError, LookupError, AttributeError, RuntimeError, AssertionError)
"""What Python and torch raise for numbers and words that no code expected."""
_FROM_ZERO = {"start", "offset", "order", "entry", "padding", "before", "after", "token"}
"""Whole numbers that count from zero; all others are sizes, of which there is at least one."""
_RATES = {"dropout", "rate"}
_SCALARS = (bool, int, float, str)


def check_whole(spec: Any) -> ModelSpec:
    """Return the spec if it is that of a whole model whose numbers can be meant.

    Raises:
        ModelFileError: it is not; the place in the tree is named.
    """
    if not isinstance(spec, ModelSpec):
        kind = spec.kind if isinstance(spec, ModuleSpec) else type(spec).__name__
        raise ModelFileError(f"{kind} is not a whole model", "a whole model is a kind such as models.decoder.Decoder")
    for path, node in traverse(spec):
        # Only a table of tokens, which has no head, no positions and no masks either, is a model without blocks.
        if isinstance(node, Stack.Spec) and not node.blocks and (spec.head_names or node.positions or node.masks):
            raise ModelFileError(f"{path} has no blocks", "a model has at least one layer")
        if fault := fault_of(node):
            raise ModelFileError(f"{f'{path}.' if path else ''}{fault}", "correct the setting")
    return spec


def fault_of(settings: Any) -> str | None:
    """Say which field of a record of settings has a value that cannot be meant, if any has."""
    for name, hint in _hints(settings.__class__).items():
        if fault := _fault(name, getattr(settings, name), hint):
            return f"{name} {fault}"
    return None


@functools.cache
def _hints(kind: type[Any]) -> dict[str, Any]:
    """Return the annotations of the fields of a record of settings."""
    hints = typing.get_type_hints(kind)
    return {f.name: hints[f.name] for f in dataclasses.fields(kind)}


def _fault(name: str, value: Any, hint: Any) -> str | None:
    """Say what is wrong with the value of a field, if anything is."""
    if not _allows(hint, value):
        return f"is {str(value)[:60]!r}, which is none of its kind"
    for number in value if isinstance(value, tuple) else (value,):
        if type(number) is int and number < (0 if name in _FROM_ZERO else 1):
            return f"is {number}"
        if isinstance(number, float) and not math.isfinite(number):
            return f"is {number}"
        if name in _RATES and isinstance(number, int | float) and not 0 <= number < 1:
            return f"is {number}, not at least 0 and below 1"
    return None


def _allows(hint: Any, value: Any) -> bool:
    """Say whether an annotation allows a value; what is no scalar is judged by those who build it."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return any(_allows(one, value) for one in inner)
    if value is None:
        return hint is type(None)
    if hint is float:
        return type(value) in (int, float)
    if hint in _SCALARS:
        return type(value) is hint
    if isinstance(value, _SCALARS):
        return origin is typing.Literal and value in inner
    if origin is tuple and isinstance(value, tuple) and inner[-1] is Ellipsis:
        return all(_allows(inner[0], item) for item in value)
    return isinstance(value, hint) if isinstance(hint, type) and issubclass(hint, Value) else True


@contextmanager
def describes_a_model(source: Path | str) -> Iterator[None]:
    """Turn what Python and torch raise for senseless settings into one error that names the file."""
    try:
        yield
    except ModelFileError as error:
        if str(source) in error.message:
            raise
        raise ModelFileError(f"{source}: {error.message}", error.hint) from error
    except OrreryError:
        raise
    except (*_UNBUILDABLE, RecursionError) as error:
        raise ModelFileError(
            f"{source} describes no model that can be built: {type(error).__name__}: {str(error)[:300]}",
            "correct the setting; config.json and weights of one published model fit each other",
        ) from error
