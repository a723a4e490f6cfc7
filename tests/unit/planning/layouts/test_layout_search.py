"""The search against a list of everything, and every error with what would fit."""

from itertools import product

import pytest

from orrery.errors import UsageError
from orrery.families import load_family
from orrery.planning.layouts.launch import launch
from orrery.planning.layouts.layout import (
    FULL,
    RECOMPUTATIONS,
    SELECTIVE,
    ParallelLayout,
    check_layout,
    interleaves,
    parse_layout,
    stages,
)
from orrery.planning.layouts.layout_plan import plan_layout, refuse_too_large
from orrery.planning.layouts.memory import memory
from orrery.planning.layouts.search import LayoutSearch, best, layouts, would_fit
from orrery.planning.layouts.step_time import step_time
from orrery.planning.layouts.tables import scaled, scaled_rows
from orrery.planning.layouts.training import TrainingStep
from orrery.planning.layouts.work import DecoderWork, work_of
from orrery.planning.machines import load_machine
from orrery.planning.presets import preset
from orrery.recipes.parallel import divisors

GPT3 = work_of(preset("gpt3-175b"), "gpt3-175b")
A100 = load_machine("a100-80gb")
TRAINING = TrainingStep(1_536, 2_048)
FEW = {"context": (1,), "interleave": (1,), "micro": (1, 2)}
"""Degrees that keep a search short where nothing depends on the others."""
SMALL = DecoderWork("small", 60_000_000_000, 60_000_000_000, 12, 8_192, 8, 8, 1_024, 32_768, 50_000, 2_048)
MIXTURE = DecoderWork(
    "mixture", 60_000_000_000, 20_000_000_000, 6, 4_096, 8, 4, 512, 16_384, 50_000, 1_024, 4, 1, ups=2
)


def by_hand(work, training, machine, devices, limit):
    """Return the least time of all layouts of so many devices or fewer, tried one by one."""
    times = []
    ranks = [n for n in range(1, devices + 1)]
    for tensor, pipeline, context in product(ranks, ranks, (1, 2)):
        room = devices // (tensor * pipeline * context)
        for data, fsdp, zero, micro, chunks, again, expert in product(
            range(1, room + 1),
            range(1, room + 1),
            (1, 2, 3),
            (1, 2, 4, 8, 16),
            (1, 2, 3, 4, 6, 7),
            RECOMPUTATIONS,
            ranks,
        ):
            if data * fsdp > room or (fsdp == 1 and zero != 3):
                continue
            layout = ParallelLayout(
                data, fsdp, tensor, pipeline, context, expert, zero, micro, chunks, recompute=RECOMPUTATIONS[again]
            )
            try:
                check_layout(work, training, layout)
            except UsageError:
                continue
            if memory(work, training, layout).total <= limit:
                times.append(step_time(work, training, layout, machine).total)
    return min(times)


@pytest.mark.parametrize(
    ("work", "sequences", "devices", "limit"),
    [(SMALL, 16, 4, 400e9), (SMALL, 12, 6, 320e9), (MIXTURE, 16, 4, 300e9)],
)
def test_the_best_is_the_best_of_all(work, sequences, devices, limit):
    training = TrainingStep(sequences, work.length)
    plan = best(LayoutSearch(work, training, A100, devices, limit))
    assert plan.time.total == pytest.approx(by_hand(work, training, A100, devices, limit), rel=1e-12)
    assert plan.memory.total <= limit
    assert plan.layout.devices <= devices


def test_every_layout_that_is_searched_divides():
    search = LayoutSearch(GPT3, TRAINING, A100, 24)
    every = list(layouts(search))
    assert len(every) == len(set(every)) > 1_000
    for layout in every:
        check_layout(GPT3, TRAINING, layout)
        assert layout.devices <= 24


def test_a_larger_memory_is_never_slower_and_more_devices_neither():
    small = work_of(preset("gpt3-6.7b"), "gpt3-6.7b")
    training = TrainingStep(64, 2_048)
    times = [best(LayoutSearch(small, training, A100, 16, limit, FEW)).time.total for limit in (12e9, 20e9, 80e9)]
    assert times == sorted(times, reverse=True)
    assert times[0] > times[-1]
    times = [best(LayoutSearch(small, training, A100, devices, only=FEW)).time.total for devices in (2, 8, 20, 32)]
    assert times == sorted(times, reverse=True)
    assert best(LayoutSearch(small, training, A100, 20, only=FEW)).layout.devices <= 20


def test_none_fits_says_what_would():
    with pytest.raises(UsageError) as error:
        best(LayoutSearch(GPT3, TRAINING, A100, 8))
    assert "no layout of gpt3-175b fits 8 devices of 80.0 GB: the smallest" in error.value.message
    assert error.value.hint.startswith("64 devices would do, with ")
    with pytest.raises(UsageError, match="no layout") as error:
        best(LayoutSearch(GPT3, TRAINING, A100, 8, 1e6, {**FEW, "tensor": (8,), "pipeline": (1,)}))
    assert error.value.hint.startswith("more devices do not help")
    with pytest.raises(UsageError, match="the degrees that are allowed"):
        best(LayoutSearch(GPT3, TRAINING, A100, 8, only={"tensor": (5,)}))


def test_a_layout_that_is_too_large_says_what_would_fit():
    plan = plan_layout(GPT3, TRAINING, ParallelLayout(data=8, tensor=8, pipeline=8), A100)
    hint = would_fit(plan, 50e9)
    with pytest.raises(UsageError, match=r"data=8,tensor=8,pipeline=8 needs [\d.]+ GB a device, and 50.0 GB are there"):
        refuse_too_large(plan, 50e9, hint)
    assert "recompute=full" in hint
    assert "pipeline=16" in hint
    assert "no single change" in would_fit(plan, 1e6)
    refuse_too_large(plan, 80e9, "")


@pytest.mark.parametrize(
    ("layout", "message", "hint"),
    [
        ("tensor=5", "tensor=5 does not divide the 96 heads of gpt3-175b", "would fit: 1, 2, 3, 4, 6, 8"),
        ("context=3", "context=3 does not divide the 2,048 tokens of a sequence", "would fit: 1, 2, 4, 8"),
        ("pipeline=5", "pipeline=5 does not divide the 96 layers of gpt3-175b", "would fit: 2, 3, 4, 6, 7, 8"),
        ("data=5", "data=5 x fsdp=1 x micro=1 = 5 does not divide the 1,536 sequences", "would fit: 1, 2, 3, 4, 6, 8"),
        ("micro=1000", "micro=1000 = 1,000 does not divide", "would fit"),
        ("expert=2,data=2", "expert=2 does not divide the 1 experts of a layer", "would fit: 1"),
        ("pipeline=8,interleave=5", "interleave=5 does not cut a stage of 12 layers", "pipeline=8: 1, 2, 3, 4, 6, 12"),
        ("interleave=2", "interleave=2 does not cut a stage of 96 layers", "would fit with pipeline=1: 1"),
        ("pipeline=8,interleave=2,data=512", "3 micro batches do not fill 8 stages", "a larger batch"),
    ],
)
def test_what_does_not_divide_is_refused_with_what_would(layout, message, hint):
    with pytest.raises(UsageError) as error:
        check_layout(GPT3, TRAINING, parse_layout(layout))
    assert message in error.value.message
    assert hint in error.value.hint


def test_heads_of_keys_and_experts_are_shared_evenly_too():
    mixtral = work_of(load_family("mixtral").spec({}), "mixtral")
    for layout in ("tensor=8", "tensor=16", "expert=4,data=4", "expert=8,data=2,fsdp=4"):
        check_layout(mixtral, TrainingStep(64, 4_096), parse_layout(layout))
    with pytest.raises(UsageError, match="expert=4 does not divide data=1 x fsdp=2"):
        check_layout(mixtral, TrainingStep(64, 4_096), parse_layout("expert=4,fsdp=2"))
    three = DecoderWork("three", 10**9, 10**9, 4, 384, 6, 3, 64, 1_536, 1_000, 128)
    with pytest.raises(UsageError, match="the 3 heads of keys and values"):
        check_layout(three, TrainingStep(8, 128), parse_layout("tensor=2"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tenso=4", "a part 'tenso=4'"),
        ("tensor", "a part 'tensor'"),
        ("tensor=0", "tensor=0 in the layout is no degree"),
        ("tensor=-1", "tensor=-1"),
        ("tensor=1.5", "tensor=1.5"),
        ("tensor=1000000001", "no degree"),
        ("tensor=99999999999999999999", "no degree"),
        (f"tensor={'0' * 12}9999999999", "no degree"),
        (f"tensor={'9' * 5000}", "no degree"),
        ("tensor=\u00b2", "no degree"),
        ("zero=4", "zero=4"),
        ("zero=0", "zero=0"),
        ("zero=11", "zero=11"),
        ("data=2,data=3", "data twice"),
        ("recompute=some", "recompute=some"),
        ("sequence=maybe", "sequence=maybe"),
        ("", "a part ''"),
    ],
)
def test_what_is_no_layout_is_refused(text, message):
    with pytest.raises(UsageError, match=message):
        parse_layout(text)


def test_degrees_at_their_bounds_are_read():
    for text, layout in (
        ("tensor=1", ParallelLayout()),
        ("tensor=1000000000", ParallelLayout(tensor=10**9)),
        ("fsdp=2,zero=1", ParallelLayout(fsdp=2, zero=1)),
        ("fsdp=2,zero=3", ParallelLayout(fsdp=2, zero=3)),
    ):
        assert parse_layout(text) == layout


def test_a_layout_is_read_as_it_is_written():
    for layout in (
        ParallelLayout(),
        ParallelLayout(2, 4, 8, 16, 2, 4, 1, 2, 3, sequence=False, recompute=FULL),
        ParallelLayout(data=3, recompute=SELECTIVE),
        ParallelLayout(fsdp=8),
    ):
        assert parse_layout(layout.text()) == layout


def test_degrees_that_fit():
    assert divisors(12) == [1, 2, 3, 4, 6, 12]
    llama = DecoderWork("llama", 10**9, 10**9, 126, 1_024, 8, 8, 128, 4_096, 1_000, 128)
    assert {14, 16, 32, 64, 126} <= set(stages(llama))
    assert 128 not in stages(llama)  # the first stage would have no layer
    assert interleaves(llama, 16) == [1, 2, 4, 8]
    assert interleaves(llama, 1) == [1]


def test_the_launch_fills_nodes():
    layout = parse_layout("data=8,tensor=8,pipeline=16,interleave=3,recompute=full")
    start = launch(layout, TRAINING, A100)
    assert (start.nodes, start.processes, start.micro_batches) == (128, 8, 192)
    assert start.command("gpt3.yaml") == (
        "torchrun --nnodes 128 --nproc-per-node 8 --rdzv-backend c10d --rdzv-endpoint HOST:29500 -m orrery train "
        "gpt3.yaml --parallel.data 8 --parallel.tensor 8 --parallel.pipeline 16 --parallel.micro 1 "
        "--parallel.interleave 3 --parallel.recompute full"
    )
    alone = launch(ParallelLayout(fsdp=6, zero=2), TrainingStep(6, 2_048), A100)
    assert (alone.nodes, alone.processes) == (1, 6)
    assert "rdzv" not in alone.command()
    assert alone.degrees() == {"fsdp": 6, "micro": 1, "zero": 2}
    assert launch(ParallelLayout(data=12), TrainingStep(12, 2_048), A100).processes == 6


def test_the_table_goes_to_a_hundred_thousand_devices():
    small = work_of(preset("gpt3-1.3b"), "gpt3-1.3b")
    search = LayoutSearch(small, TrainingStep(512, 2_048), A100, 1, only=FEW)
    plans = scaled(search, (1, 8, 1_000, 100_000))
    rows = scaled_rows(plans, 300e9)
    assert [row[0] for row in rows] == ["1", "8", "1,000", "100,000"]
    assert rows[0][2] == "data=1" or "recompute" in rows[0][2]
    times = [one.plan.time.total for one in plans]
    assert times == sorted(times, reverse=True)
    efficiency = [one.plan.mfu() for one in plans]
    assert efficiency == sorted(efficiency, reverse=True)


def test_a_row_without_a_layout_says_why():
    plans = scaled(LayoutSearch(GPT3, TRAINING, A100, 1), (1,))
    assert plans[0].plan is None
    assert plans[0].why.startswith("no layout of gpt3-175b fits 1 devices")
    assert scaled_rows(plans, 1e9)[0][2] == "none fits"
