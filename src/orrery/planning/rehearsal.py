"""A step rehearsed: run on tensors without numbers, to see what it multiplies and what it keeps in memory.

Every operation of the real step takes place, in the formats and by the kernels of this processor, but none computes
anything. So the plan follows the model: a new family needs no formula here.
"""

import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode, is_fake
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry

from orrery.inspection.operations import OperationWatch
from orrery.nn.rehearsal import rehearsal
from orrery.planning.lstm_workspace import workspace_bytes

aten: Any = torch.ops.aten
MAPPED = 32 * 1024 * 1024
"""Bytes from which the C library of Linux takes new pages from the system for an allocation, and gives them back."""

BETWEEN_TOKENS = frozenset(
    {
        aten.bmm,
        aten.baddbmm,
        aten._scaled_dot_product_flash_attention_for_cpu,
        aten._scaled_dot_product_flash_attention_for_cpu_backward,
    }
)
"""Operations that multiply what tokens have made, among them those of attention; all others multiply by weights."""


def _attention(q: torch.Size, k: torch.Size, v: torch.Size, *rest: Any, **named: Any) -> int:
    """Count scores and mixed values of every head of the queries: torch's own, up to 2.11, refuses shared keys."""
    rows, heads, queries, channels = q
    return 2 * rows * heads * queries * k[2] * (channels + v[3])


def _attention_backward(
    above: torch.Size, q: torch.Size, k: torch.Size, v: torch.Size, *rest: Any, **named: Any
) -> int:
    # Twice the forward pass. That the kernel computes the scores once more is its own affair, as with checkpoints.
    return 2 * _attention(q, k, v)


def _lstm(x: torch.Size, weight: torch.Size, recurrent: torch.Size, *rest: Any, **named: Any) -> int:
    tokens = x[0] * x[1]
    return 2 * tokens * (weight[0] * weight[1] + recurrent[0] * recurrent[1])


def _lstm_backward(*given: Any, **named: Any) -> int:
    return 2 * _lstm(*given)


def _linear(x: torch.Size, weight: torch.Size, *rest: Any, **named: Any) -> int:
    return 2 * x.numel() * weight[0]


OURS: dict[Any, Callable[..., int]] = {
    aten._scaled_dot_product_flash_attention_for_cpu: _attention,
    aten._scaled_dot_product_flash_attention_for_cpu_backward: _attention_backward,
    aten.mkldnn_rnn_layer: _lstm,
    aten.mkldnn_rnn_layer_backward: _lstm_backward,
    torch.ops.mkldnn._linear_pointwise: _linear,
}
"""Operations of the processor's own kernels, which torch's counter does not know."""


def operations_of(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any], out: Any) -> int:
    """Return the floating-point operations of an operation's products; of what multiplies no matrices, none."""
    packet = func._overloadpacket
    if packet in OURS:
        return OURS[packet](*(one.shape if isinstance(one, Tensor) else one for one in args), **kwargs)
    return int(flop_registry[packet](*args, **kwargs, out_val=out)) if packet in flop_registry else 0


@dataclass(frozen=True)
class RehearsedCost:
    """Floating-point operations, a multiplication and an addition counted as two.

    Attributes:
        weights: in products with weights, and for their gradients.
        tokens: in products between tokens: attention, and the states of what replaces it.
    """

    weights: int = 0
    tokens: int = 0

    @property
    def total(self) -> int:
        """Return both."""
        return self.weights + self.tokens

    def __add__(self, other: "RehearsedCost") -> "RehearsedCost":
        """Return the sum."""
        return RehearsedCost(self.weights + other.weights, self.tokens + other.tokens)

    def __sub__(self, other: "RehearsedCost") -> "RehearsedCost":
        """Return the difference."""
        return self + -1 * other

    def __rmul__(self, times: int) -> "RehearsedCost":
        """Return several times as much."""
        return RehearsedCost(times * self.weights, times * self.tokens)


@dataclass
class Rehearsal:
    """What has happened while it was told of every operation; ``part`` gives a part of it a name.

    Attributes:
        work: operations by part.
        live: bytes that lie in memory now, of what was made inside.
        peak: the most of ``live`` so far.
        heap: bytes of ``live`` in tensors under ``MAPPED``, which share the heap of the C library.
        heap_peak: the most of ``heap`` so far.
        watch: told of every operation while a part has a name: the operation, its arguments, its result, and the
            products' operations in it.
    """

    work: dict[str, RehearsedCost] = field(default_factory=dict)
    live: int = 0
    peak: int = 0
    heap: int = 0
    heap_peak: int = 0
    watch: Callable[[Any, Sequence[Any], Any, int], None] | None = None
    now: str = ""

    def __post_init__(self) -> None:
        self._held: dict[int, int] = {}

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Count what happens inside under a name."""
        before, self.now = self.now, name
        self.work.setdefault(name, RehearsedCost())
        try:
            yield
        finally:
            self.now = before

    def see(self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any], out: Any) -> None:
        """Note an operation."""
        if func._overloadpacket is aten.mkldnn_rnn_layer and is_fake(out[0]):
            self._hold(out[3], workspace_bytes(args[0].shape, args[1].shape[0] // 4))
        for made in tree_leaves(out):
            if isinstance(made, Tensor):
                self._hold(made)
        if self.now:
            self._count(func, args, kwargs, out)

    def _count(self, func: Any, args: Any, kwargs: Any, out: Any) -> None:
        packet, operations = func._overloadpacket, operations_of(func, args, kwargs, out)
        cost = RehearsedCost(tokens=operations) if packet in BETWEEN_TOKENS else RehearsedCost(weights=operations)
        self.work[self.now] += cost
        if self.watch is not None:
            self.watch(func, args, out, operations)

    def _hold(self, tensor: Tensor, size: int | None = None) -> None:
        storage = tensor.untyped_storage()
        if storage._cdata in self._held:
            return
        size = storage.nbytes() if size is None else size
        self._held[storage._cdata] = size
        self._change(size, 1)
        weakref.finalize(storage, self._free, storage._cdata)

    def _free(self, storage: int) -> None:
        self._change(self._held.pop(storage, 0), -1)

    def _change(self, size: int, sign: int) -> None:
        self.live += sign * size
        self.heap += sign * size * (size < MAPPED)
        self.peak, self.heap_peak = max(self.peak, self.live), max(self.heap_peak, self.heap)

    def begin_anew(self) -> None:
        """Forget the peaks so far."""
        self.peak, self.heap_peak = self.live, self.heap


@contextmanager
def watched() -> Iterator[Rehearsal]:
    """Run what is inside, and write it down."""
    found = Rehearsal()
    with OperationWatch(found.see):
        yield found


@contextmanager
def rehearsed() -> Iterator[Rehearsal]:
    """Run what is inside without numbers, and write it down."""
    with FakeTensorMode(allow_non_fake_inputs=True), rehearsal(), watched() as found:
        yield found
