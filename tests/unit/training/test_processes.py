"""Several processes of one run: each has its own GPU, and one of them writes, scores and speaks for all."""

from collections.abc import Callable
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import torch.distributed as dist

from orrery.errors import MachineError, UsageError
from orrery.recipes.read import check_recipe
from orrery.scores.resampled import mean_of
from orrery.tasks.finetuning import seeds as finetuning
from orrery.tasks.finetuning.findings import Findings
from orrery.training import distributed
from orrery.training.distributed import Alone, Group, own_device
from orrery.training.loop import Outcome
from orrery.training.parallel.joining import find_ranks
from orrery.training.processes import environment_number, leads, processes
from orrery.training.progress import Lines, Silent, find_reporter

TASK = {
    "name": "t",
    "task": "classification",
    "model": {"from": "base"},
    "data": {"kind": "labelled", "train": "t.csv", "split": {"every": 10}},
    "batches": {"length": 8, "size": 2},
    "objective": "classification",
    "training": {"steps": 1, "optimizer": {"rate": 1e-3}},
}


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[Any]]:
    """Return what sets a process of a machine with GPUs, and gives what is done with these."""

    asked: dict[str, Any] = {}

    def set_up(gpus: int, world: int, rank: int, local: int | None) -> list[Any]:
        did: list[Any] = []

        def joins(backend: str, store: Any, timeout: timedelta, **how: Any) -> None:
            did.append(("joined", backend))
            asked.update(how, timeout=timeout)

        monkeypatch.setattr(torch.cuda, "is_available", lambda: gpus > 0)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
        monkeypatch.setattr(torch.cuda, "set_device", lambda device: did.append(("set_device", device)))
        monkeypatch.setattr(dist, "is_initialized", lambda: any(what == "joined" for what, _ in did))
        store = dist.HashStore()
        monkeypatch.setattr(dist, "rendezvous", lambda url, timeout: iter([(store, rank, world)]))
        monkeypatch.setattr(dist, "init_process_group", joins)
        monkeypatch.setattr(distributed, "watch", lambda *how: SimpleNamespace(leave=lambda: None))  # nobody is there
        monkeypatch.setattr(distributed, "WATCHES", [])
        monkeypatch.setattr(dist, "get_rank", lambda: rank)
        monkeypatch.setattr(dist, "get_world_size", lambda: world)
        for name, value in (("WORLD_SIZE", world), ("RANK", rank), ("LOCAL_RANK", local)):
            if value is None:
                monkeypatch.delenv(name, raising=False)
            else:
                monkeypatch.setenv(name, str(value))
        return did

    set_up.asked = asked  # type: ignore[attr-defined]
    return set_up


@pytest.mark.parametrize(
    ("gpus", "world", "rank", "local"),
    [
        (2, 2, 0, 0),
        (2, 2, 1, 1),
        (8, 8, 7, 7),
        (8, 16, 13, 5),
        (4, 8, 4, 0),
        (8, 2, 1, 1),
        (1, 2, 1, 0),
        (2, 2, 1, None),
    ],
)
def test_a_process_takes_the_gpu_of_its_number_on_its_machine(
    gpus: int, world: int, rank: int, local: int | None, begun: Callable[..., list[Any]]
) -> None:
    did = begun(gpus, world, rank, local)
    ranks = find_ranks("auto")
    assert isinstance(ranks, Group)
    assert ranks.device == torch.device("cuda", local or 0)
    assert did == [("set_device", ranks.device), ("joined", "nccl")]
    assert (ranks.rank, ranks.replica, ranks.replicas, ranks.devices) == (rank, rank, world, world)
    assert begun.asked == {
        "rank": rank,
        "world_size": world,
        "device_id": ranks.device,
        "timeout": timedelta(seconds=1800),
    }
    find_ranks("cuda")  # of a second run in the same process
    assert [what for what, _ in did].count("joined") == 1


@pytest.mark.parametrize(("gpus", "requested"), [(0, "auto"), (0, "cpu"), (4, "cpu")])
def test_processes_without_gpus_join_through_gloo(gpus: int, requested: str, begun: Callable[..., list[Any]]) -> None:
    did = begun(gpus, 4, 3, 3)
    ranks = find_ranks(requested)
    assert isinstance(ranks, Group)
    assert ranks.device == torch.device("cpu")
    assert did == [("joined", "gloo")]


@pytest.mark.parametrize(("gpus", "local"), [(1, 1), (1, 7), (2, 2), (4, 9), (8, 8)])
def test_more_processes_than_gpus_are_refused(gpus: int, local: int, begun: Callable[..., list[Any]]) -> None:
    did = begun(gpus, local + 1, local, local)
    with pytest.raises(MachineError, match=f"process {local} of this machine, .* finds {gpus} GPU") as fault:
        find_ranks("auto")
    assert f"--nproc-per-node {gpus}" in fault.value.hint
    assert not did
    assert own_device("cpu") == torch.device("cpu")  # as the hint says


def test_one_process_is_alone(begun: Callable[..., list[Any]]) -> None:
    assert begun(2, 1, 0, 1) == []
    assert isinstance(find_ranks("auto"), Alone)


@pytest.mark.parametrize("text", ["", "two", "-1", "1.5", "\u0663", "1e3", " 1"])
def test_what_is_no_number_is_refused(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", text)
    with pytest.raises(UsageError, match=r"WORLD_SIZE is .* and no number") as fault:
        processes()
    assert "torchrun" in fault.value.hint
    assert environment_number("ORRERY_UNSET_NUMBER", 5) == 5


@pytest.mark.parametrize(
    ("world", "rank", "first"), [(1, 0, True), (1, 3, True), (2, 0, True), (2, 1, False), (9, 8, False)]
)
@pytest.mark.parametrize("seeds", [1, 3])
def test_one_process_scores_and_speaks(
    world: int,
    rank: int,
    first: bool,
    seeds: int,
    begun: Callable[..., list[Any]],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Any,
) -> None:
    begun(0, world, rank, rank)
    did: list[str] = []

    def executed(recipe: Any, place: Any, reporter: Any, **how: Any) -> Outcome:
        did.append("trained")
        assert isinstance(reporter, Lines if first else Silent)
        return Outcome(1, None, None)

    def concluded(*given: Any) -> Any:
        did.append("scored")
        given[3]("a score")
        return Findings((mean_of("accuracy", "a test", [1.0, 0.0]),), "2 texts held back")

    monkeypatch.setattr(finetuning, "execute", executed)
    monkeypatch.setattr(finetuning, "conclude", concluded)
    said: list[str] = []
    done = finetuning.with_seeds(check_recipe(TASK, "a test"), tmp_path, find_reporter, said.append, seeds=seeds)
    assert leads() is first
    assert did == (["trained", "scored"] if first else ["trained"]) * seeds
    assert len(said) == ((seeds + (seeds > 1)) if first else 0)
    assert len(done.runs) == seeds
    assert len(done.findings) == (seeds if first else 0)
