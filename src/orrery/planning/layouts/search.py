"""The best layout: the least step time of all whose degrees divide and that fit the memory."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import product
from typing import Any

from orrery.errors import UsageError
from orrery.planning.layouts.layout import (
    FULL,
    RECOMPUTATIONS,
    ParallelLayout,
    Recomputation,
    check_layout,
    interleaves,
    stages,
)
from orrery.planning.layouts.layout_plan import LayoutPlan, plan_layout
from orrery.planning.layouts.memory import memory
from orrery.planning.layouts.step_time import step_time
from orrery.planning.layouts.training import TrainingStep
from orrery.planning.layouts.work import DecoderWork
from orrery.planning.machines import Machine
from orrery.recipes.parallel import divisors

MICRO = (1, 2, 4, 8, 16)
WIDEST = 64
"""Tensor ranks that are tried, and never more than a node has."""
SHORTEST = 1024
"""Tokens that a context rank keeps at least."""
MOST = 1_048_576
"""Devices up to which is looked for what would fit."""


@dataclass(frozen=True)
class LayoutSearch:
    """Where to look.

    Attributes:
        work: the model.
        training: the batch.
        machine: on which.
        devices: that there are; a layout may leave some idle where no degrees make their number.
        limit: bytes of a device; the machine's where nothing is given.
        only: by the name of a degree, the values that it may have.
    """

    work: DecoderWork
    training: TrainingStep
    machine: Machine
    devices: int
    limit: int | float | None = None
    only: Mapping[str, Sequence[int | bool | Recomputation]] = field(default_factory=dict)

    @property
    def room(self) -> int | float:
        """The bytes of a device."""
        return self.machine.memory if self.limit is None else self.limit


def best(search: LayoutSearch) -> LayoutPlan:
    """Return the plan with the least time of a step among all that fit; of equal ones that with the least memory.

    What the shards of FSDP send can only add to a step, so layouts are tried in the order of their time without it,
    until none can be better than the best.

    Raises:
        UsageError: none fits: how much the smallest needs, and how many devices would do.
    """
    bounded = sorted(_bounded(search), key=lambda pair: pair[0])
    fastest: tuple[int | float, int | float, ParallelLayout] | None = None
    for bound, start in bounded:
        if fastest is not None and bound > fastest[0]:
            break
        for layout in _sharded(search, start):
            bytes_ = memory(search.work, search.training, layout).total
            if bytes_ <= search.room:
                seconds = step_time(search.work, search.training, layout, search.machine).total
                if fastest is None or (seconds, bytes_) < fastest[:2]:
                    fastest = seconds, bytes_, layout
    if fastest is None:
        raise _none_fits(search)
    return plan_layout(search.work, search.training, fastest[2], search.machine)


def layouts(search: LayoutSearch) -> Iterator[ParallelLayout]:
    """Yield every layout that is searched, in no order of time."""
    for start in _starts(search):
        yield from _sharded(search, start)


def _bounded(search: LayoutSearch) -> Iterator[tuple[int | float, ParallelLayout]]:
    """Yield each layout that can fit, without shards, with the least time that shards can leave it."""
    for start in _starts(search):
        if _least(search, start) <= search.room:
            time = step_time(search.work, search.training, start, search.machine)
            yield time.total - time.data - time.fsdp - time.optimizer, start


def _least(search: LayoutSearch, start: ParallelLayout) -> int | float:
    """Return a bound of the memory of a layout with any shards: more of them never need more."""
    all_shards = (replace(start, data=1, fsdp=start.replicas, zero=zero) for zero in (2, 3))
    return min(memory(search.work, search.training, layout).total for layout in all_shards)


def _starts(search: LayoutSearch) -> Iterator[ParallelLayout]:
    """Yield layouts with all replicas as copies; the batch is cut into as many as there are devices for."""
    work, training = search.work, search.training
    tensors = [n for n in divisors(work.heads) if n <= min(WIDEST, search.machine.node) and _cuts(work, n)]
    contexts = [n for n in divisors(training.length) if training.length // n >= min(SHORTEST, training.length)]
    degrees = product(
        _allowed(search, "tensor", tensors),
        _allowed(search, "pipeline", stages(work)),
        _allowed(search, "context", contexts),
        _allowed(search, "micro", MICRO),
        _allowed(search, "expert", divisors(work.experts)),
    )
    for tensor, pipeline, context, micro, expert in degrees:
        room = search.devices // (tensor * pipeline * context)
        if training.sequences % micro or not room:
            continue
        replicas = max(n for n in divisors(training.sequences // micro) if n <= room)
        if replicas % expert:
            continue
        layout = ParallelLayout(replicas, 1, tensor, pipeline, context, expert, micro=micro)
        for chunks in _allowed(search, "interleave", interleaves(work, pipeline)):
            if chunks == 1 or layout.micro_batches(training) % pipeline == 0:
                for again in _allowed(search, "recompute", list(RECOMPUTATIONS.values())):
                    yield replace(layout, interleave=chunks, recompute=again, sequence=_sequence(search))


def _sharded(search: LayoutSearch, start: ParallelLayout) -> Iterator[ParallelLayout]:
    """Yield a layout with each part of its replicas as FSDP's shards, by each stage of ZeRO."""
    for fsdp in _allowed(search, "fsdp", divisors(start.replicas)):
        if start.replicas % fsdp or (fsdp % start.expert and start.expert % fsdp):
            continue
        if start.replicas // fsdp in _allowed(search, "data", [start.replicas // fsdp]):
            for zero in _allowed(search, "zero", (1, 2, 3)) if fsdp > 1 else (3,):
                yield replace(start, data=start.replicas // fsdp, fsdp=fsdp, zero=zero)


def _allowed(search: LayoutSearch, name: str, values: Sequence[Any]) -> list[Any]:
    """Return the values of a degree that may be tried."""
    only = search.only.get(name)
    return [value for value in values if only is None or value in only]


def _sequence(search: LayoutSearch) -> bool:
    return bool(search.only.get("sequence", (True,))[0])


def _cuts(work: DecoderWork, tensor: int) -> bool:
    return work.hidden % tensor == 0 and (tensor >= work.kv_heads or work.kv_heads % tensor == 0)


def _none_fits(search: LayoutSearch) -> UsageError:
    """Return the error of a search that found nothing."""
    what = f"{search.devices:,} devices of {search.room / 1e9:,.1f} GB"
    if next(layouts(search), None) is None:
        hint = "allow more degrees, or give a batch with more divisors"
        return UsageError(f"no layout of {search.work.name} has the degrees that are allowed for {what}", hint)
    least, smallest = _smallest(search)
    message = (
        f"no layout of {search.work.name} fits {what}: the smallest, {smallest.text()}, needs {least / 1e9:,.1f} GB"
    )
    devices = search.devices
    while devices < MOST:
        devices *= 2
        more, layout = _smallest(replace(search, devices=devices))
        if more <= search.room:
            hint = f"{devices:,} devices would do, with {layout.text()}: {more / 1e9:,.1f} GB"
            return UsageError(message, hint)
    hint = "more devices do not help: give more memory, shorter sequences, or a smaller model"
    return UsageError(message, hint)


def _smallest(search: LayoutSearch) -> tuple[int | float, ParallelLayout]:
    """Return the layout that needs the least memory: everything sharded and recomputed, where that is allowed."""
    only: dict[str, Sequence[int | bool | Recomputation]] = dict(search.only)
    for name, value in (("recompute", FULL), ("zero", 3), ("micro", 1), ("interleave", 1)):
        only.setdefault(name, (value,))
    sizes = ((memory(search.work, search.training, one).total, one) for one in layouts(replace(search, only=only)))
    return min(sizes, key=lambda pair: pair[0])


def would_fit(plan: LayoutPlan, limit: int | float) -> str:
    """Return the single changes of a layout that make it fit, each with its memory; or that none does."""
    fitting = []
    for change in _changes(plan):
        layout = replace(plan.layout, **change)
        try:
            check_layout(plan.work, plan.training, layout)
        except UsageError:
            continue
        needed = memory(plan.work, plan.training, layout).total
        if needed <= limit:
            shown = ",".join(f"{name}={getattr(value, 'name', value)}" for name, value in change.items())
            fitting.append(f"{shown} ({needed / 1e9:,.1f} GB)")
    if fitting:
        return f"would fit: {'; '.join(fitting)}"
    return "no single change of it fits: search for a layout by leaving it out, or take more devices"


def _changes(plan: LayoutPlan) -> Iterator[dict[str, Any]]:
    """Yield changes that need less memory: recomputing, smaller micro batches, shards, more ranks and stages."""
    layout = plan.layout
    yield from ({"recompute": again} for again in RECOMPUTATIONS.values() if again.kept + again.scores < _kept(layout))
    if layout.micro > 1:
        yield {"micro": 1}
    if layout.data > 1:
        yield {"data": 1, "fsdp": layout.replicas, "zero": 3}
    if layout.fsdp > 1 and layout.zero < 3:
        yield {"zero": 3}
    yield from ({"tensor": n} for n in divisors(plan.work.heads) if layout.tensor < n <= plan.machine.node)
    yield from ({"pipeline": n, "interleave": 1} for n in stages(plan.work) if n > layout.pipeline)


def _kept(layout: ParallelLayout) -> int | float:
    return layout.recompute.kept + layout.recompute.scores


def degrees(layout: ParallelLayout) -> dict[str, int]:
    """Return the degrees of a layout by name."""
    names = ("data", "fsdp", "tensor", "pipeline", "context", "expert")
    return {f.name: getattr(layout, f.name) for f in fields(layout) if f.name in names}
