"""The ranks of a run: which rows of the global batch are mine, and sums over all ranks."""

import os
from collections.abc import Iterable
from typing import Protocol, runtime_checkable

import torch
import torch.distributed as dist
from torch import Tensor, nn


@runtime_checkable
class Ranks(Protocol):
    """One process among ``world``; rank 0 alone writes files and prints."""

    rank: int
    world: int

    def rows(self, count: int) -> range:
        """Return which of ``count`` rows of the global batch this process computes."""
        ...

    def sum(self, values: Tensor) -> Tensor:
        """Return the sum of ``values`` over the ranks."""
        ...

    def sum_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Replace each gradient by its sum over the ranks."""
        ...

    def any(self, flag: bool) -> bool:
        """Say whether any rank raised its flag."""
        ...


class Alone:
    """The only process: every row is mine and every sum is already complete."""

    rank, world = 0, 1

    def rows(self, count: int) -> range:
        """Return all rows."""
        return range(count)

    def sum(self, values: Tensor) -> Tensor:
        """Return the values."""
        return values

    def sum_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Leave the gradients as they are."""

    def any(self, flag: bool) -> bool:
        """Return the flag."""
        return flag


class Group:
    """One of several processes started by ``torchrun``, joined through gloo or, on GPUs, nccl."""

    def __init__(self) -> None:
        dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

    def rows(self, count: int) -> range:
        """Return a contiguous share of the rows; the shares differ by one row at most."""
        return range(count * self.rank // self.world, count * (self.rank + 1) // self.world)

    def sum(self, values: Tensor) -> Tensor:
        """Return the sum over the ranks, a new tensor."""
        total = values.to(self.device, copy=True)
        dist.all_reduce(total)
        return total.to(values.device)

    def sum_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Sum all gradients in one message; a parameter no rank used keeps None, as in a single process."""
        everything = list(parameters)
        used = self.sum(torch.tensor([parameter.grad is not None for parameter in everything]).int()).tolist()
        shared = [parameter for parameter, count in zip(everything, used, strict=True) if count]
        if not shared:
            return
        for parameter in shared:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        flat = self.sum(torch.cat([_gradient(parameter).flatten() for parameter in shared]))
        pieces = flat.split([parameter.numel() for parameter in shared])
        for parameter, piece in zip(shared, pieces, strict=True):
            _gradient(parameter).copy_(piece.view_as(parameter))

    def any(self, flag: bool) -> bool:
        """Say whether any rank raised its flag."""
        return bool(self.sum(torch.tensor([int(flag)])).item())


def _gradient(parameter: nn.Parameter) -> Tensor:
    assert parameter.grad is not None
    return parameter.grad


def find_ranks() -> Ranks:
    """Join the group that ``torchrun`` describes in the environment, or be alone."""
    return Group() if int(os.environ.get("WORLD_SIZE", "1")) > 1 else Alone()
