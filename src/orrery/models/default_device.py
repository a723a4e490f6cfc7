"""Where tensors are made that name no device: on the CPU in here, whatever a caller's ``torch.set_default_device``."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import wraps
from inspect import isfunction
from typing import Any, ParamSpec, TypeVar

import torch

Given = ParamSpec("Given")
Found = TypeVar("Found")
Kind = TypeVar("Kind", bound=type[Any])


def cpu_by_default() -> AbstractContextManager[Any]:
    """Return a context in which tensors that name no device are on the CPU; it costs nothing where they are already.

    What is computed on a model's device says so where it is made. Lengths, ids and orders are the host's.
    """
    return nullcontext() if torch.get_default_device().type == "cpu" else torch.device("cpu")


def on_cpu_by_default(act: Callable[Given, Found]) -> Callable[Given, Found]:
    """Return a function that does its work in `cpu_by_default`."""

    @wraps(act)
    def door(*args: Given.args, **kwargs: Given.kwargs) -> Found:
        with cpu_by_default():
            return act(*args, **kwargs)

    return door


def doors_on_cpu_by_default(kind: Kind) -> Kind:
    """Return a class whose public methods do their work in `cpu_by_default`."""
    for name, member in list(vars(kind).items()):
        if isfunction(member) and (name == "__call__" or not name.startswith("_")):
            setattr(kind, name, on_cpu_by_default(member))
    return kind
