"""Processes that share weights go through the model equally often; parts of tensors, where nothing is shared."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

from orrery.errors import RunError, UsageError
from orrery.recipes.parallel import ParallelSettings
from orrery.training.distributed import Alone
from orrery.training.parallel.placement import Everywhere, place
from orrery.training.parallel.shards import held_bytes, like, own_part, shared, whole
from orrery.training.parallel.sharing import Sharing
from orrery.training.pieces import pieces
from orrery.training.state import first_bad_tensor, refuse_bad_weights


def sharing(rank: int, ranks: int) -> Sharing:
    group: Any = SimpleNamespace(
        rank=rank,
        replica=rank,
        replicas=ranks,
        part=rank,
        parts=ranks,
        devices=ranks,
        rows=lambda count: range(count * rank // ranks, count * (rank + 1) // ranks),
    )
    return Sharing(group)


@pytest.mark.parametrize("ranks", [1, 2, 3, 8])
@pytest.mark.parametrize("size", [None, 1, 2, 5])
def test_every_rank_makes_as_many_passes(ranks: int, size: int | None) -> None:
    for count in range(1, 20):
        passes = [[rows for rows in own.passes(count, size)] for own in (sharing(rank, ranks) for rank in range(ranks))]
        assert {len(each) for each in passes} == {len([*pieces(range(-(-count // ranks)), size)])}
        assert [row for each in passes for rows, adds in each if adds for row in rows] == [*range(count)]


def test_what_is_called_in_an_idle_pass_does_not_count() -> None:
    own = sharing(0, 3)
    assert not own.idling
    idle = own.passes(2, None)  # the first of three ranks has none of two rows
    assert next(idle) == (range(1), False)
    assert own.idling
    assert not [*idle]
    assert not own.idling


def test_what_shares_weights_hears_which_pass_is_the_last() -> None:
    own, heard = sharing(1, 2), list[bool]()
    own.before = heard.append
    assert [*own.passes(5, 2)] == [(range(2, 4), True), (range(4, 5), True)]
    assert heard == [False, True]


def test_a_tensor_that_nobody_shares_is_its_own_part() -> None:
    tensor = torch.ones(3, 2)
    assert not shared(tensor)
    assert own_part(tensor) is whole(tensor) is like(tensor, torch.zeros(3, 2)) is tensor
    assert held_bytes(tensor) == 24


def test_one_process_has_the_model_itself() -> None:
    model = nn.Linear(2, 2)
    placement = place(model, Alone(), ParallelSettings())
    assert isinstance(placement, Everywhere)
    with placement.whole() as own:
        assert own is model
    assert placement.writer(lambda own: own) is model  # type: ignore[arg-type,return-value]


def test_weights_are_shared_by_ranks_that_share_them_alone() -> None:
    with pytest.raises(UsageError, match="fsdp 2 and expert 1: the ranks of the run share nothing"):
        place(nn.Linear(2, 2), Alone(), ParallelSettings(fsdp=2))


def test_what_another_process_finds_bad_is_named() -> None:
    class Two(Alone):
        """This process, and another that finds the bias bad."""

        def sum(self, values: torch.Tensor) -> torch.Tensor:
            return values + torch.tensor([0, 1])

        def any(self, flag: bool) -> bool:
            return True

    model = nn.Linear(2, 2)
    assert first_bad_tensor(model) == "none (only the loss)"
    refuse_bad_weights(model, 3)
    assert first_bad_tensor(model, Two()) == "weight bias"
    with pytest.raises(RunError, match="step 3: weight bias is not finite"):
        refuse_bad_weights(model, 3, Two())
