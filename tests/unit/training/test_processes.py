"""Several processes of one run: each has its own GPU, and one of them writes, scores and speaks for all."""

import json
import socket
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
from orrery.training.processes import STARTERS, environment_number, leads, processes
from orrery.training.progress import Lines, Silent, find_reporter
from orrery.training.state import magnitude, refuse_unlike

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


@pytest.mark.parametrize(
    ("said", "named"),
    [
        ({"WORLD_SIZE": "2"}, "RANK is no number below it"),
        ({"WORLD_SIZE": "2", "RANK": "2"}, "RANK is no number below it"),
        ({"WORLD_SIZE": "0", "RANK": "0"}, "WORLD_SIZE is 0"),
        ({"WORLD_SIZE": "2", "RANK": "0"}, "do not find each other: environment variable MASTER_ADDR"),
        ({"WORLD_SIZE": "2", "RANK": "0", "MASTER_ADDR": "127.0.0.1"}, "environment variable MASTER_PORT"),
        ({"WORLD_SIZE": "2", "RANK": "0", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "x"}, "invalid literal"),
    ],
)
def test_processes_of_which_half_is_said_are_refused(
    said: dict[str, str], named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_others(monkeypatch, said)
    with pytest.raises(UsageError, match=named) as fault:
        find_ranks("cpu")
    assert "torchrun" in fault.value.hint


def test_a_port_that_is_taken_and_processes_that_do_not_come_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("", 0)) as taken:
        place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(taken.getsockname()[1])}
        without_others(monkeypatch, {"WORLD_SIZE": "2", "RANK": "0", **place})
        with pytest.raises(MachineError, match=r"do not find each other: .*address already in use"):
            find_ranks("cpu")


@pytest.mark.parametrize(
    "names",
    [
        ("SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "SLURM_LOCALID"),
        ("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK"),
        ("PMI_SIZE", "PMI_RANK", "MPI_LOCALRANKID"),
    ],
)
def test_slurm_and_mpi_say_it_too_where_the_first_machine_is_named(
    names: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    said = dict(zip(names, ("4", "3", "1"), strict=True))
    without_others(monkeypatch, said)
    assert (processes(), leads()) == (1, True)  # runs of their own
    without_others(monkeypatch, {**said, "MASTER_ADDR": "first"})
    assert (processes(), leads(), environment_number("LOCAL_RANK", 0)) == (4, False, 1)
    asked: list[str] = []
    monkeypatch.setattr(dist, "rendezvous", lambda place, timeout: asked.append(place) or iter(()))
    with pytest.raises(StopIteration):
        find_ranks("cpu")
    assert asked == ["env://?rank=3&world_size=4"]
    without_others(monkeypatch, {**said, "MASTER_ADDR": "first", "WORLD_SIZE": "2", "RANK": "0"})
    assert (processes(), leads()) == (2, True)  # srun started torchrun


def without_others(monkeypatch: pytest.MonkeyPatch, said: dict[str, str]) -> None:
    """Have the environment say this of the processes, and nothing else."""
    everything = {name for one in STARTERS for name in one.values()}
    for name in {*everything, "WORLD_SIZE", "RANK", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT"}:
        monkeypatch.delenv(name, raising=False)
    for name, value in said.items():
        monkeypatch.setenv(name, value)


class Played(Alone):
    """One of two processes, whose first one is played."""

    def __init__(self, said: str) -> None:
        self.rank, self.said = 1, said

    def told(self, text: str) -> str:
        return self.said


def test_processes_with_other_data_or_weights_are_refused() -> None:
    own = {"version": "1", "recipe": "r", "checkpoint": "none", "corpus": "c"}
    first = {**own, "weights": 2.0}
    refuse_unlike(own, 2.0 + 1e-9, Played(json.dumps(first)))
    refuse_unlike(own, float("nan"), Played(json.dumps({**first, "weights": float("nan")})))
    for name, other, weights in (
        ("corpus", {"corpus": "d"}, 2.0),
        ("recipe", {"recipe": "s"}, 2.0),
        ("weights", {}, 3.0),
    ):
        with pytest.raises(UsageError, match=rf"differ: process 1 has another {name}") as fault:
            refuse_unlike(own | other, weights, Played(json.dumps(first)))
        assert "data" in fault.value.hint


def test_other_weights_have_another_magnitude() -> None:
    model = torch.nn.Linear(2, 2)
    before = magnitude(model)
    with torch.no_grad():
        model.weight[0, 0] += 0.1
    assert abs(magnitude(model) - before) > 1e-3
