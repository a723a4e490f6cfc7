"""What processes that share a layer send each other, forwards and backwards: torch's DTensor sends it."""

import torch
from torch import Tensor
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Partial, Placement, Replicate, Shard

COPY, SUM = Replicate(), Partial()


def passed(x: Tensor, mesh: DeviceMesh, has: Placement, wants: Placement, gradient: Placement) -> Tensor:
    """Return a tensor as another way of sharing it wants it.

    Args:
        x: what this process has.
        mesh: of the processes that share.
        has: copies, terms of a sum, or a part.
        wants: the same of what is returned.
        gradient: the same of the gradient that comes back to it.
    """
    x = x if torch.is_grad_enabled() else x.detach()  # torch warns of a part that would learn where nothing does
    whole = DTensor.from_local(x, mesh, [has], run_check=False)
    own: Tensor = whole.redistribute(placements=[wants]).to_local(grad_placements=[gradient])
    return own


def entered(x: Tensor, mesh: DeviceMesh) -> Tensor:
    """Return copies as they are, to layers of which each process computes a part: gradients are summed."""
    return passed(x, mesh, COPY, COPY, SUM)


def left(x: Tensor, mesh: DeviceMesh) -> Tensor:
    """Return the sum over the processes."""
    return passed(x, mesh, SUM, COPY, COPY)


def own_tokens(x_BLD: Tensor, mesh: DeviceMesh) -> Tensor:
    """Return the own tokens of rows that all processes have; the last token is repeated where they do not divide."""
    missing = -x_BLD.shape[1] % mesh.size()
    padded_BLD = x_BLD if not missing else _repeated(x_BLD, missing)
    return passed(padded_BLD, mesh, COPY, Shard(1), Shard(1))


def all_tokens(x_BLD: Tensor, mesh: DeviceMesh, length: int) -> Tensor:
    """Return the tokens of all processes, to what each of them computes whole."""
    return passed(x_BLD, mesh, Shard(1), COPY, COPY)[:, :length]


def entered_by_tokens(x_BLD: Tensor, mesh: DeviceMesh, length: int) -> Tensor:
    """Return the tokens of all processes, to layers of which each process computes a part: gradients are summed."""
    return passed(x_BLD, mesh, Shard(1), COPY, SUM)[:, :length]


def left_by_tokens(x_BLD: Tensor, mesh: DeviceMesh) -> Tensor:
    """Return the own tokens of the sum over the processes."""
    missing = -x_BLD.shape[1] % mesh.size()
    padded_BLD = x_BLD if not missing else _repeated(x_BLD, missing)
    return passed(padded_BLD, mesh, SUM, Shard(1), Shard(1))


def joined(x: Tensor, mesh: DeviceMesh, count: int) -> Tensor:
    """Return all channels, of which each process has some."""
    shape = torch.Size((*x.shape[:-1], count))
    stride = torch.empty(shape, device="meta").stride()
    x = x if torch.is_grad_enabled() else x.detach()
    whole = DTensor.from_local(x, mesh, [Shard(x.dim() - 1)], run_check=False, shape=shape, stride=stride)
    own: Tensor = whole.redistribute(placements=[COPY]).to_local(grad_placements=[COPY])
    return own


def _repeated(x_BLD: Tensor, count: int) -> Tensor:
    return x_BLD[:, [*range(x_BLD.shape[1]), *[-1] * count]]
