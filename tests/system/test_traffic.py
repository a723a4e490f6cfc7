"""What processes send each other in a step, and what each holds, is what ``orrery plan`` says."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import traffic
from processes_together import told

PROGRAM = Path(traffic.__file__)
LOGITS = traffic.ROWS * traffic.SIZES["vocab_size"] // 2 * 8
"""A head that is shared asks for its width: a row of logits for each piece, which a plan leaves out."""
MOVED = {"fsdp": ("allgather_base", "reduce_scatter_base"), "data": ("allreduce",), "pipeline": ("send",)}
MOVED |= {"context": ("all_gather_into_tensor", "reduce_scatter_tensor")}
"""The operations that one kind of parallelism alone has."""
MICRO = [f"data=1 fsdp=2 zero={zero} micro={micro}" for zero in (2, 3) for micro in (1, 2, 4)]
COPIES = [f"data=2 fsdp=2 zero={zero} micro={micro}" for zero in (2, 3) for micro in (1, 2)]
COPIES += ["data=2 context=2", "fsdp=2 context=2 zero=2", "data=2 fsdp=2 expert=2 zero=2 family=mixtral"]
LAYOUTS = ["data=2", "data=1 fsdp=2", "context=2", "pipeline=2", *MICRO, *COPIES]
OTHERS = ["tensor=2", "tensor=2 sequence=0", "expert=2 data=2 family=mixtral"]
HELD = [
    "data=2 zero=1",
    "data=1 fsdp=2 vocabulary=61",
    "tensor=2 vocabulary=61",
    "data=1 fsdp=2 expert=2 family=mixtral",
]
HELD_BY_FOUR = ["fsdp=4 vocabulary=61", "fsdp=4 zero=2", "data=2 tensor=2", "fsdp=2 tensor=2", "fsdp=2 tensor=2 zero=2"]
WHOLE = "tensor=2 whole=yes"
"""Parts that keep the memory of the whole."""
Found = Callable[[str], dict[str, Any]]


@pytest.fixture(scope="module")
def found() -> Found:
    """Return what gives the count of a layout: all of as many processes are counted at one start."""

    @cache
    def counts(world: int) -> dict[str, dict[str, Any]]:
        four = [*COPIES, *HELD_BY_FOUR]
        layouts = four if world == 4 else [each for each in (*LAYOUTS, *OTHERS, *HELD, WHOLE) if each not in four]
        return dict(zip(layouts, told(str(PROGRAM), *layouts, world=world), strict=True))

    return lambda layout: counts(4 if layout in (*COPIES, *HELD_BY_FOUR) else 2)[layout]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_bytes_are_those_of_the_plan(layout: str, found: Found) -> None:
    own, planned = found(layout)["sent"], found(layout)["plan"]
    planned.pop("expert", None)
    assert {kind: sum(own.get(name, 0) for name in MOVED[kind]) for kind in planned} == planned, own


@pytest.mark.parametrize("sequence", ["", " sequence=0"])
def test_layers_that_are_parted_send_as_much_as_planned(sequence: str, found: Found) -> None:
    own, planned = found(f"tensor=2{sequence}")["sent"], found(f"tensor=2{sequence}")["plan"]
    vectors = own.pop("all_reduce of vectors", 0)  # gradients of norms on own tokens
    assert bool(vectors) == (not sequence)
    assert sum(own.values()) - LOGITS == planned["tensor"], own


def test_tokens_go_to_their_experts_as_often_as_planned(found: Found) -> None:
    own, planned = (found(OTHERS[-1])[what] for what in ("sent", "plan"))
    assert own["allreduce"] == planned["data"]
    assert own["all_to_all_single"] / 2 == pytest.approx(planned["expert"], rel=0.05)  # half stays where it is


def apart(layout: str, found: Found) -> dict[str, float]:
    """Return how far what a process holds is from the plan, by kind, as a share of the plan."""
    own, planned = found(layout)["held"], found(layout)["memory"]
    if "fsdp=" in layout and "zero=2" in layout:
        own = {**own, "weights": own["weights"] + own["gathered"]}  # shards stay beside what is gathered
    elif "fsdp=" in layout and "expert" not in layout:
        own = {**own, "gathered": own["gathered"] + found(layout)["layer"]}  # what is on its way is in no parameter
    kinds = [kind for kind in ("weights", "gradients", "optimizer", "gathered") if planned[kind]]
    return {kind: own[kind] / planned[kind] - 1 for kind in kinds if kind != "gathered" or "expert" not in layout}


@pytest.mark.parametrize("layout", [*LAYOUTS, *OTHERS, *HELD, *HELD_BY_FOUR])
def test_a_process_holds_what_is_planned_and_nothing_else(layout: str, found: Found) -> None:
    far, held = apart(layout, found), found(layout)["held"]
    assert max(map(abs, far.values())) < 0.02, far
    # A stage keeps room for the streams that it receives in a step.
    room = traffic.ROWS * traffic.LENGTH * traffic.SIZES["hidden_size"] * 8 if "pipeline" in layout else 0
    assert held["other"] - room < 0.02 * held["weights"], held


def test_parts_that_keep_the_whole_are_seen(found: Found) -> None:
    assert apart(WHOLE, found)["weights"] > 0.9
