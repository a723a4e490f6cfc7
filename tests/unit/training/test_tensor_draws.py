"""Random numbers of processes that compute a layer together: each draws its own, and all go on from one state."""

from dataclasses import dataclass
from typing import Any

import torch

from orrery.nn.attention.operands import KeysValues, Operands
from orrery.training.parallel.tensor_parallel import own_draws, own_heads


@dataclass(frozen=True)
class Place:
    """A process of a mesh, which is not there."""

    rank: int

    def get_local_rank(self) -> int:
        return self.rank


def drawn(rank: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return what a process draws for itself, and what comes after it."""
    torch.manual_seed(3)
    mesh: Any = Place(rank)
    own = own_draws(lambda x: torch.rand_like(x), mesh, torch.zeros(50))
    return own, torch.rand(5)


def test_each_process_draws_its_own_and_leaves_one_state() -> None:
    (first, after), (second, after_second) = drawn(0), drawn(1)
    again, _ = drawn(0)
    assert torch.equal(first, again)
    assert not torch.equal(first, second)
    assert torch.equal(after, after_second)


def test_a_kernel_without_dropout_draws_nothing() -> None:
    mesh: Any = Place(1)
    mask: Any = None
    q, kv = torch.zeros(1, 2, 3, 4), KeysValues(torch.zeros(1, 2, 3, 4), torch.zeros(1, 2, 3, 4))
    torch.manual_seed(3)
    expected = torch.rand(5)
    torch.manual_seed(3)
    own_heads(lambda q, kv, operands: q, mesh, q, kv, Operands(mask, 1.0))
    assert torch.equal(torch.rand(5), expected)
