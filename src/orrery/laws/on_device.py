"""The laws on another device: they make their tensors without a word about where, and this says where."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode


class DrawnOnTheHost(TorchFunctionMode):
    """Inside this context random numbers of a generator of the CPU are drawn there and then brought to the device.

    So the models and inputs of a law have the same numbers on every device.
    """

    def __init__(self, device: torch.device) -> None:
        super().__init__()
        self.device = device

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        generator = kwargs.get("generator")
        if generator is None or generator.device.type != "cpu":
            return func(*args, **kwargs)
        name = getattr(func, "__name__", "")
        if name.endswith("_") and isinstance(args[0], Tensor):
            drawn = func(args[0].cpu(), *args[1:], **kwargs)
            return args[0].copy_(drawn)
        if any(isinstance(one, Tensor) for one in args):
            args = tuple(one.cpu() if isinstance(one, Tensor) else one for one in args)
        else:
            kwargs["device"] = "cpu"
        return func(*args, **kwargs).to(self.device)


@contextmanager
def on_device(name: str) -> Iterator[None]:
    """Let tensors be made on a device wherever nothing else is said."""
    if name == "cpu":
        yield
        return
    device = torch.device(name)
    with device, DrawnOnTheHost(device):
        yield
