"""The ranks of a run: which rows of the global batch are mine, and sums over all ranks."""

import atexit
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Protocol, runtime_checkable

import torch
import torch.distributed as dist
from torch import Tensor, nn

from orrery.errors import MachineError, UsageError
from orrery.models.inputs import Batch
from orrery.recipes.parallel import ParallelSettings
from orrery.training.parallel.columns import own_columns
from orrery.training.parallel.shards import own_part, owned, takes_part
from orrery.training.pieces import Passes, passes
from orrery.training.precision import find_device
from orrery.training.processes import environment_number, processes
from orrery.training.watching import Watch, watch

WATCHES: list[Watch] = []
"""Of this process, from its joining the others on."""
LOST: list[MachineError] = []
"""What this process has said of others that it has lost."""
TRANSPORTS = ("gloo", "NCCL")
"""What the errors of torch's ways to send name, beside classes of their own."""


@runtime_checkable
class Ranks(Protocol):
    """One process among ``devices``; rank 0 alone writes files and prints.

    ``replica`` is the number, among ``replicas``, of the rows of a batch that this process computes; ``part`` that,
    among ``parts``, of the processes whose sums are added: rows, tokens of rows, or layers.
    """

    rank: int
    replica: int
    replicas: int
    part: int
    parts: int
    devices: int

    def rows(self, count: int) -> range:
        """Return which of ``count`` rows of the global batch this process computes."""
        ...

    def passes(self, count: int, size: int | None) -> Passes:
        """Yield the rows of each pass of this process, at most ``size``, and whether they add to the loss."""
        ...

    def own(self, batch: Batch) -> Batch:
        """Return the tokens of rows that this process computes."""
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

    def told(self, text: str) -> str:
        """Return the text of the first rank."""
        ...


class Alone:
    """The only process: every row is mine and every sum is already complete."""

    rank, replica, replicas, part, parts, devices = 0, 0, 1, 0, 1, 1

    def rows(self, count: int) -> range:
        """Return all rows."""
        return range(count)

    def passes(self, count: int, size: int | None) -> Passes:
        """Yield all rows."""
        return passes(self.rows(count), size)

    def own(self, batch: Batch) -> Batch:
        """Return all tokens."""
        return batch

    def sum(self, values: Tensor) -> Tensor:
        """Return the values."""
        return values

    def sum_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Leave the gradients as they are."""

    def any(self, flag: bool) -> bool:
        """Return the flag."""
        return flag

    def told(self, text: str) -> str:
        """Return the text."""
        return text


class Group:
    """One of several processes started by ``torchrun``, joined through gloo or, on GPUs, nccl.

    Each ``tensor`` neighbours compute the same numbers together, so that one of them counts in a sum; each ``context``
    of these share the tokens of rows. The degrees count in the order tensor, context, fsdp, data, pipeline, tensor
    fastest.
    """

    def __init__(self, device: str = "auto", degrees: ParallelSettings | None = None) -> None:
        degrees = degrees or ParallelSettings()
        self.device = own_device(device)
        if not dist.is_initialized():  # of several runs in a row the first joins
            join(self.device, timedelta(seconds=degrees.timeout))
        self.rank, self.devices, tensor = dist.get_rank(), dist.get_world_size(), degrees.tensor
        self.part, self.parts, self.context = self.rank // tensor, self.devices // tensor, degrees.context
        self.replicas = self.parts // (self.context * degrees.pipeline)
        self.replica = self.part // self.context % self.replicas
        self.alike: Any = None
        for first in range(tensor if tensor > 1 else 0):  # every process takes part in making every group
            group = dist.new_group(range(first, self.devices, tensor))
            self.alike = group if self.rank % tensor == first else self.alike

    def rows(self, count: int) -> range:
        """Return a contiguous share of the rows; the shares differ by one row at most."""
        return range(count * self.replica // self.replicas, count * (self.replica + 1) // self.replicas)

    def passes(self, count: int, size: int | None) -> Passes:
        """Yield own rows: ranks with copies of the model wait for each other at the end of a step alone."""
        return passes(self.rows(count), size)

    def own(self, batch: Batch) -> Batch:
        """Return the tokens of rows that this process computes: all, or its share."""
        return batch if self.context == 1 else own_columns(batch, self.context, self.part % self.context)

    def sum(self, values: Tensor) -> Tensor:
        """Return the sum over the ranks of different parts, a new tensor."""
        total = values.to(self.device, copy=True)
        dist.all_reduce(total, group=self.alike)
        return total.to(values.device)

    def sum_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Sum all gradients in one message; a parameter no rank used keeps None, as in a single process.

        What some ranks alone have is summed over these.
        """
        everything = list(parameters)
        used = self.sum(torch.tensor([parameter.grad is not None for parameter in everything]).int()).tolist()
        learning = [parameter for parameter, count in zip(everything, used, strict=True) if count]
        for parameter in learning:
            if owned(parameter):
                sum_owned(parameter)
        shared = [parameter for parameter in learning if not owned(parameter)]
        if not shared:
            return
        for parameter in shared:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        flat = self.sum(torch.cat([_gradient(parameter).flatten() for parameter in shared]))
        gradients = [_gradient(parameter) for parameter in shared]
        for gradient, piece in zip(gradients, flat.split([each.numel() for each in gradients]), strict=True):
            gradient.copy_(piece.view_as(gradient))

    def any(self, flag: bool) -> bool:
        """Say whether any rank raised its flag."""
        raised = torch.tensor([int(flag)], device=self.device)
        dist.all_reduce(raised)
        return bool(raised.item())

    def told(self, text: str) -> str:
        """Return the text of the first rank."""
        said = [text]
        dist.broadcast_object_list(said, src=0, device=self.device)
        return said[0]


def _gradient(parameter: nn.Parameter) -> Tensor:
    """Return this process's part of a gradient."""
    assert parameter.grad is not None
    return own_part(parameter.grad)


def sum_owned(parameter: Any) -> None:
    """Sum the gradient of a parameter over the ranks that alone have it; the others get one that is empty."""
    if parameter.grad is None:
        parameter.grad = torch.zeros_like(parameter)
    mesh = parameter.device_mesh
    if takes_part(mesh) and mesh.size() > 1:
        dist.all_reduce(own_part(parameter.grad), group=mesh.get_group())


@contextmanager
def lost_processes() -> Iterator[None]:
    """Tell the others of an error here, and turn that of a message that found no other process into one that says so.

    Raises:
        MachineError: another process of the run has ended, or did not answer in time.
    """
    try:
        yield
    except BaseException as error:
        for each in WATCHES:
            each.fail()
        lost = isinstance(error, dist.DistError) or (
            isinstance(error, RuntimeError) and any(name in str(error) for name in TRANSPORTS)
        )
        if not lost or not dist.is_initialized():
            raise
        LOST.append(lost_process(str(error).splitlines()[0][:200]))
        raise LOST[-1] from error


def lost_process(reason: str) -> MachineError:
    """Return the error of a process that has lost another one."""
    hint = "see what the first process that ended says; the same command with --resume goes on from the last "
    hint += "checkpoint, and torchrun --max-restarts 3 does so by itself. parallel.timeout is how long one waits"
    return MachineError(f"process {dist.get_rank()} of the run has lost another one: {reason}", hint)


def leave_if_lost(code: int) -> None:
    """End this process with an exit code, where it has lost another one and has said so.

    The end of an interpreter, which takes modules and connections apart, takes seconds of a busy processor: whoever
    starts the processes again waits for it.
    """
    if LOST and code == MachineError.exit_code:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(code)


def end_here() -> None:
    """End this process where it stands, whatever it waits for, with the error that it has lost another one."""
    error = lost_process("its connection was closed")
    os.write(2, f"error: {error.message}\nhint: {error.hint}\n".encode())
    os._exit(error.exit_code)


def join(device: torch.device, timeout: timedelta) -> None:
    """Join the processes that ``torchrun`` started, through nccl on GPUs, else gloo.

    Where ``torchrun`` starts them again after one has died, its store still has the addresses of those before: each
    start has a part of the store of its own. From here on one that is lost ends the others.

    Raises:
        UsageError: nothing says where the first process is.
        MachineError: it is not there, or others do not come.
    """
    rendezvous: Any = dist.rendezvous
    place = f"env://?rank={environment_number('RANK', 0)}&world_size={processes()}"
    hint = (
        "torchrun sets MASTER_ADDR and MASTER_PORT for its processes: the machine of the first, and a free port there"
    )
    try:
        store, rank, world = next(rendezvous(place, timeout=timeout))
    except (ValueError, dist.DistError) as error:
        message = (
            f"the processes of the run do not find each other: {str(error).splitlines()[0].rpartition('vous: ')[2]}"
        )
        raise (UsageError if isinstance(error, ValueError) else MachineError)(message, hint) from error
    start = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    how = {"store": dist.PrefixStore(f"start-{start}", store), "rank": rank, "world_size": world, "timeout": timeout}
    if device.type == "cuda":
        dist.init_process_group("nccl", device_id=device, **how)
    else:
        dist.init_process_group("gloo", **how)
    watching = watch(how["store"], rank, world, timeout.total_seconds(), end_here)
    WATCHES.append(watching)
    atexit.register(watching.leave)


def own_device(requested: str) -> torch.device:
    """Return the device of this process: of the GPUs of its machine the one of its number there (``LOCAL_RANK``).

    Raises:
        MachineError: there is no such GPU.
    """
    if find_device(requested) == "cpu":
        return torch.device("cpu")
    number, count = environment_number("LOCAL_RANK", 0), torch.cuda.device_count()
    if 0 < count <= number:
        message = f"process {number} of this machine, counted from 0, finds {count} GPU{'s' * (count > 1)}"
        raise MachineError(message, f"start one process a GPU: --nproc-per-node {count}, or take training.device cpu")
    return torch.device("cuda", number)
