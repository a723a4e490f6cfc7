"""The one place where operations are seen as torch carries them out: costs and explanations follow what it tells."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch.utils._python_dispatch import TorchDispatchMode

SeeOperation = Callable[[Any, Sequence[Any], Mapping[str, Any], Any], None]
"""Told of an operation, its arguments, its named arguments, and its result."""


class OperationWatch(TorchDispatchMode):
    """Tells ``see`` of every operation inside, each after it has taken place; none is changed."""

    def __init__(self, see: SeeOperation) -> None:
        super().__init__()
        self._see = see

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Carry an operation out and tell of it."""
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        self._see(func, args, kwargs, out)
        return out
