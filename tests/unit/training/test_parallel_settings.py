"""How many processes share a run: the degrees of the planner, which of them a run has, and what is refused."""

from dataclasses import fields
from pathlib import Path

import pytest

from orrery.errors import UsageError
from orrery.planning.layouts.launch import launch
from orrery.planning.layouts.layout import ParallelLayout, parse_layout
from orrery.planning.layouts.training import TrainingStep
from orrery.planning.machines import load_machine
from orrery.recipes.config import Recipe
from orrery.recipes.parallel import UNJOINED, ParallelSettings, settled
from orrery.recipes.read import check_recipe, plain, refuse_changes
from orrery.runs.execute import execute
from orrery.training.progress import Silent
from training_toy import toy_recipe

HERE = ("data", "micro", "timeout", "compile")
"""What a run takes otherwise than the planner: all processes, all rows of a share at once, a time, compiled blocks."""


def recipe(**parallel: object) -> Recipe:
    return check_recipe({**plain(toy_recipe()), "parallel": parallel}, "a test")


def test_the_degrees_are_the_planners() -> None:
    usual = ParallelLayout()
    names = {field.name: getattr(usual, field.name) for field in fields(usual)}
    names["recompute"] = usual.recompute.name
    own = ParallelSettings().model_dump()
    assert own.keys() == names.keys() | {"timeout", "compile"}
    assert {name: own[name] for name in own if name not in HERE} == {
        name: names[name] for name in names if name not in HERE
    }
    assert (own["data"], own["micro"]) == (-1, None)


@pytest.mark.parametrize(
    "text",
    [
        *("data=1", "data=4", "data=2,micro=2", "micro=4", "fsdp=4", "data=2,fsdp=2,recompute=full", "fsdp=2,tensor=2"),
        *("context=2", "data=2,context=2,tensor=2", "data=4,expert=2", "pipeline=2,interleave=2,data=2"),
    ],
)
def test_what_the_planner_prints_is_accepted_as_printed(text: str) -> None:
    layout = parse_layout(text)
    degrees = launch(layout, TrainingStep(16, 8), load_machine("h100")).degrees()
    read = recipe(**degrees)
    found = settled(read.parallel, layout.devices, 16)
    assert (found.data, found.fsdp, found.zero) == (layout.data, layout.fsdp, layout.zero)
    assert (found.tensor, found.sequence) == (layout.tensor, layout.sequence)
    names = ("context", "expert", "pipeline", "interleave")
    assert [getattr(found, name) for name in names] == [getattr(layout, name) for name in names]
    assert (read.training.micro_batch, read.parallel.recompute) == (layout.micro, layout.recompute.name)


@pytest.mark.parametrize(("one", "other"), UNJOINED)
def test_degrees_that_do_not_go_together_are_refused_by_name(one: str, other: str) -> None:
    with pytest.raises(UsageError, match=rf"parallel: {one} 2: with {other} 2: .*; "):
        recipe(**{one: 2, other: 2})


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"zero": 1, "fsdp": 2}, "zero 1: gradients are always shared"),
        ({"expert": 2, "fsdp": 4}, "expert 2: with fsdp 4: an expert is not shared further; take a multiple of fsdp"),
        ({"interleave": 2}, "interleave 2: it cuts the stages of a pipeline, and there is none; give pipeline too"),
        ({"recompute": "half"}, "parallel.recompute"),
        ({"data": 0}, "data 0 is no degree"),
        ({"data": -2}, "parallel.data"),
        ({"zero": 4}, "parallel.zero"),
        ({"timeout": 0}, "parallel.timeout"),
        ({"tensors": 2}, "did you mean 'tensor'"),
        ({"micro": 2, "data": True}, "true is no number"),
    ],
)
def test_what_is_no_degree_is_refused(settings: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        recipe(**settings)


@pytest.mark.parametrize(
    ("settings", "processes", "rows", "data"),
    [
        ({}, 1, 3, 1),
        ({}, 4, 3, 4),
        ({"data": 4}, 4, 8, 4),
        ({"data": 4}, 4, None, 4),
        ({"data": 1}, 1, 1, 1),
        ({"fsdp": 2}, 8, 8, 4),
        ({"fsdp": 2}, 2, 2, 1),
        ({"tensor": 2}, 8, 8, 4),
        ({"tensor": 2}, 2, 3, 1),
        ({"fsdp": 2, "tensor": 2}, 8, 4, 2),
        ({"context": 2}, 8, 4, 4),
        ({"pipeline": 4}, 8, 4, 2),
        ({"expert": 4}, 8, 8, 8),
        ({"expert": 4, "fsdp": 2}, 8, 8, 4),
        ({"context": 2, "tensor": 2, "fsdp": 2}, 8, 4, 1),
    ],
)
def test_the_processes_are_shared_out(settings: dict[str, object], processes: int, rows: int | None, data: int) -> None:
    assert settled(ParallelSettings(**settings), processes, rows).data == data


@pytest.mark.parametrize(
    ("settings", "processes", "rows", "said", "hint"),
    [
        ({"data": 2}, 1, 8, "are 2 processes, and there are 1", "torchrun --nproc-per-node 2"),
        ({"data": 2}, 8, 8, "are 2 processes, and there are 8", "torchrun --nproc-per-node 2"),
        ({"fsdp": 4}, 6, 8, "parallel.fsdp 4 does not divide the number of processes, 6", "would fit: 1, 2, 3, 6"),
        ({"fsdp": 2}, 1, 8, "parallel.fsdp 2 does not divide", "torchrun --nproc-per-node 2"),
        ({"tensor": 4}, 6, 8, "parallel.tensor 4 does not divide the number of processes, 6", "would fit: 1, 2, 3, 6"),
        ({"fsdp": 2, "tensor": 2}, 2, 8, "parallel.fsdp 2 x parallel.tensor 2 does not divide", "--nproc-per-node 4"),
        ({"data": 2, "tensor": 2}, 2, 8, "parallel.data 2 x parallel.tensor 2 are 4 processes", "--nproc-per-node 4"),
        ({"fsdp": 2}, 4, 6, "data=2 x fsdp=2 x micro=1 = 4 does not divide the 6 sequences", "would fit: 1, 2, 3, 6"),
        (
            {"context": 4},
            6,
            8,
            "parallel.context 4 does not divide the number of processes, 6",
            "would fit: 1, 2, 3, 6",
        ),
        ({"pipeline": 2}, 1, 8, "parallel.pipeline 2 does not divide", "torchrun --nproc-per-node 2"),
        ({"expert": 3}, 4, 8, "parallel.expert 3 does not divide the 4 processes of data x fsdp", "would fit: 1, 2, 4"),
        ({"expert": 2, "context": 2}, 2, 8, "expert 2 does not divide the 1 processes", "would fit: 1"),
        ({"data": 4}, 4, 6, "data=4 x fsdp=1 x micro=1 = 4 does not divide the 6 sequences", "would fit: 1, 2, 3, 6"),
        ({"data": 4}, 4, 2, "does not divide the 2 sequences", "would fit: 1, 2"),
        ({"data": 2, "micro": 3}, 2, 8, "micro=3 = 6 does not divide the 8 sequences", "would fit: 1, 2, 4, 8"),
    ],
)
def test_what_does_not_fit_is_refused_with_what_would(
    settings: dict[str, object], processes: int, rows: int, said: str, hint: str
) -> None:
    with pytest.raises(UsageError, match=said) as fault:
        settled(ParallelSettings(**settings), processes, rows)
    assert hint in fault.value.hint


def test_the_micro_batch_of_a_plan_takes_the_place_of_the_recipes() -> None:
    values = plain(toy_recipe(training__micro_batch=2))
    assert check_recipe({**values, "parallel": {}}, "a test").training.micro_batch == 2
    assert check_recipe({**values, "parallel": {"micro": 4}}, "a test").training.micro_batch == 4


def test_a_run_goes_on_with_other_degrees() -> None:
    before = plain(recipe())
    refuse_changes(before, recipe(data=4, timeout=60))
    del before["parallel"]  # as of a run of before there were any
    refuse_changes(before, recipe(data=2))


def test_degrees_of_other_processes_are_refused_before_anything_is_made(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="are 2 processes, and there are 1"):
        execute(recipe(data=2), tmp_path / "run", Silent(), resume=False, overwrite=False)
    assert not (tmp_path / "run").exists()
