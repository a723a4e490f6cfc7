"""The speed of this machine, measured once in a few seconds, and the time that a rehearsed step takes by it."""

from bisect import bisect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from math import exp, log
from statistics import median
from typing import Any

import torch

from orrery.families import load_family
from orrery.inspection.operations import OperationWatch
from orrery.planning.measured_step import clock_of
from orrery.planning.rehearsal import MAPPED, operations_of
from orrery.planning.roofline import RooflineOperation, call_of
from orrery.planning.samples import NARROW, USUAL, WRITES, Sample, filled, products_here
from orrery.planning.whole_step import WholeStep, rehearse
from orrery.training.machine_rates import timings
from orrery.training.precision import Precision

REPEATS = 5
"""Of which the median counts."""
SHORTEST = 0.004
"""Seconds that each repeat takes at least."""


COLD, MANY = 32_000_000, 64
"""Bytes that samples of an operation have together, and how many they are at most."""


@dataclass(frozen=True)
class Curve:
    """Something that grows or falls with a size, between the sizes at which it was measured; level beyond them."""

    sizes: tuple[float, ...]
    values: tuple[float, ...]

    def at(self, size: int | float) -> float:
        """Return the value, interpolated between the logarithms of both."""
        place = bisect(self.sizes, size)
        if place in (0, len(self.sizes)):
            return self.values[min(place, len(self.sizes) - 1)]
        (a, b), (u, v) = self.sizes[place - 1 : place + 1], self.values[place - 1 : place + 1]
        share = log(size / a) / log(b / a)
        return exp((1 - share) * log(u) + share * log(v))


@dataclass(frozen=True)
class MachineSpeed:
    """What a machine does in a second, and what every call costs it.

    Attributes:
        products: operations a second of each kind of product, by the operations of a call.
        writes: bytes a second of each kind of other operation, by the bytes of a call.
        weights: bytes a second that a product of few rows reads.
        mapping: seconds that a byte costs whose page the system has to make.
        call: seconds that an operation takes however small it is, Python's part and that of the gradients among them.
    """

    products: Mapping[str, Curve]
    writes: Mapping[str, Curve]
    weights: float
    mapping: float
    call: float

    def seconds(self, calls: Mapping[RooflineOperation, int]) -> float:
        """Return the time of a step: its products, and what else it reads and writes, one after another."""
        return sum(count * (self.call + self.mapping * one.mapped + self._one(one)) for one, count in calls.items())

    def _one(self, call: RooflineOperation) -> float:
        if call.operations:
            name = "bmm" if call.name == "baddbmm" else call.name
            curve = self.products.get(name, self.products[USUAL])
            return max(call.operations / curve.at(call.operations), call.bytes / self.weights)
        curve = self.writes.get(call.name, self.writes[USUAL])
        return call.bytes / curve.at(call.bytes) if call.bytes else 0.0


def calibrate(precision: Precision) -> MachineSpeed:
    """Measure this machine with the arithmetic and the threads of a training. Nothing is kept."""
    clock = clock_of(precision.threads)
    with torch.no_grad(), precision.context():
        products = {name: _curve(makes, clock) for name, makes in products_here().items()}
        writes = {name: _curve(makes, clock) for name, makes in WRITES.items()}
        _, narrow, seconds = _timed(NARROW, clock)
        new = _seconds(filled(new=True), clock) - _seconds(filled(new=False), clock)
    return MachineSpeed(products, writes, narrow / seconds, max(0.0, new) / (2 * MAPPED), _call(precision, clock))


def _curve(makes: Sequence[Callable[[], Sample]], clock: Callable[[], float]) -> Curve:
    """Return operations a second of products, bytes a second of what multiplies nothing."""
    timings = (_timed(make, clock) for make in makes)
    timed = sorted((float(operations or moved), seconds) for operations, moved, seconds in timings)
    return Curve(tuple(size for size, _ in timed), tuple(size / seconds for size, seconds in timed))


def _timed(make: Callable[[], Sample], clock: Callable[[], float]) -> tuple[int, int, float]:
    """Return the operations, the bytes and the seconds of a sample."""
    run, calls = make(), list[RooflineOperation]()

    def see(func: Any, args: Any, kwargs: Any, out: Any) -> None:
        calls.append(call_of(func, args, out, operations_of(func, args, kwargs, out)))

    with OperationWatch(see):
        run()
    operations, moved = sum(one.operations for one in calls), sum(one.bytes for one in calls)
    run = _in_turn([run, *(make() for _ in range(min(MANY, COLD // max(1, moved))))])
    return operations, moved, _seconds(run, clock)


def _in_turn(runs: Sequence[Sample]) -> Sample:
    """Return what runs the next at each call: in a step tensors rarely lie in the nearest cache, as lone ones would."""
    following = cycle(runs)
    return lambda: next(following)()


def _seconds(run: Sample, clock: Callable[[], float]) -> float:
    run()
    (once,) = timings(run, clock=clock)
    return median(timings(run, least=REPEATS, calls=max(1, round(SHORTEST / max(once, 1e-7))), clock=clock))


def _call(precision: Precision, clock: Callable[[], float]) -> float:
    """Return the seconds of a call in a step that is so small that calls are all it consists of."""
    rules = load_family("gpt2")
    step = WholeStep(rules.spec(rules.TINY), 1, 4, "adamw", precision)
    calls = sum(rehearse(step).calls.values())
    running = step.begin()
    running.take()
    with torch.enable_grad():
        return _seconds(running.take, clock) / calls
