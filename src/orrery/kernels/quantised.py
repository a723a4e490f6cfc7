"""Products of a few rows with a matrix of whole numbers, which is read once: eight bits a weight, or four.

Needs numba with its OpenMP layer. The specification is the product with the matrix that `orrery.tuning.quantise`
describes, written out: ``out[m, o] = sum_k scale[o, k] sum_j q[o, k g + j] x[m, k g + j]``.

Everything is float32 and written out in vectors of sixteen, so that the order of every sum stands here and not with the
compiler: it is the same for one row as for thirty-two, and a row is bit for bit the same alone and in any batch. Within
a group the sixteens are added up in two sums by turns, which are added and then multiplied by the scale; at the end
the sixteen lanes are added in halves. All places are addresses: numba's own views of arrays do not serve inside
parallel loops.
"""

import inspect
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from orrery.kernels.compiled import exactly_compiled, in_parallel
from orrery.kernels.prefetch import AHEAD, LINE, ask

LANES = 16
SUMS = 2
"""A sum of its own for every other sixteen: an addition need not wait for the one before."""
ROWS, CHANNELS = 4, 2
"""The rows and output channels of a tile: thirty-two registers hold its sums, and what is added to them."""

_INT, _BYTE, _LONG, _FLOAT = ir.IntType(64), ir.IntType(8), ir.IntType(32), ir.FloatType()
_BYTES, _LONGS, _VECTOR = (ir.VectorType(kind, LANES) for kind in (_BYTE, _LONG, _FLOAT))


def _called(builder: ir.IRBuilder, name: str, result: ir.Type, *values: ir.Value) -> ir.Value:
    shape = ir.FunctionType(result, [value.type for value in values])
    return builder.call(cgutils.get_or_insert_function(builder.module, shape, name), values)


def _fused(builder: ir.IRBuilder, a: ir.Value, b: ir.Value, c: ir.Value) -> ir.Value:
    return _called(builder, "llvm.fmuladd.v16f32", _VECTOR, a, b, c)


def _eight_bits(builder: ir.IRBuilder, stored: ir.Value, features: str) -> list[ir.Value]:
    """Return sixteen bytes as numbers."""
    return [builder.sitofp(builder.sext(stored, _LONGS), _VECTOR)]


def _four_bits(builder: ir.IRBuilder, stored: ir.Value, features: str) -> list[ir.Value]:
    """Return the low halves of sixteen bytes as numbers from -8 to 7, and the high halves."""
    low = builder.zext(stored, _LONGS)
    high = builder.lshr(low, ir.Constant(_LONGS, [4] * LANES))
    if "+avx512f" in features.split(","):  # a look-up in a table of sixteen sees the low four bits alone
        table = ir.Constant(_VECTOR, [float(number - 8) for number in range(LANES)])
        name = "llvm.x86.avx512.permvar.sf.512"
        return [_called(builder, name, _VECTOR, table, place) for place in (low, high)]
    low = builder.and_(low, ir.Constant(_LONGS, [15] * LANES))
    return [builder.fsub(builder.sitofp(half, _VECTOR), ir.Constant(_VECTOR, [8.0] * LANES)) for half in (low, high)]


def _spread(builder: ir.IRBuilder, value: ir.Value) -> ir.Value:
    """Return a vector whose lanes are all the same."""
    undefined = ir.Constant(ir.VectorType(value.type, LANES), ir.Undefined)
    first = builder.insert_element(undefined, value, _LONG(0))
    return builder.shuffle_vector(first, undefined, ir.Constant(_LONGS, None))


def _loaded(builder: ir.IRBuilder, address: ir.Value, kind: ir.Type, mask: ir.Value | None) -> ir.Value:
    """Return sixteen numbers from an address, zeros where the mask hides them."""
    place = builder.inttoptr(address, kind.as_pointer())
    size = 1 if kind is _BYTES else 4
    if mask is None:
        return builder.load(place, align=size)
    name = f"llvm.masked.load.v16{'i8' if kind is _BYTES else 'f32'}.p0"
    return _called(builder, name, kind, place, _LONG(size), mask, ir.Constant(kind, None))


def lanes_added(builder: ir.IRBuilder, vector: ir.Value) -> ir.Value:
    """Return the sum of a vector's lanes, added in halves."""
    width = vector.type.count
    while width > 1:
        width //= 2
        halves = (ir.Constant(ir.VectorType(_LONG, width), list(range(at, at + width))) for at in (0, width))
        vector = builder.fadd(*(builder.shuffle_vector(vector, vector, half) for half in halves))
    return builder.extract_element(vector, _LONG(0))


class _Tile:
    """The instructions of ``channels x rows`` numbers of a product.

    Addresses and bytes from one to the next: of weights and scales by channel, of activations by row, of results by
    row. ``groups`` of ``span`` bytes of weights make a channel.
    """

    def __init__(self, builder: ir.IRBuilder, arguments: Any, channels: int, rows: int) -> None:
        self.builder, self.channels, self.rows = builder, channels, rows
        weight, self.weight_step, scale, scale_step, x, x_step, self.out, self.out_step, *rest = arguments
        self.groups, self.span = rest
        self.weights, self.scales = (
            self._places(*of, channels) for of in ((weight, self.weight_step), (scale, scale_step))
        )
        self.x = self._places(x, x_step, rows)
        self.sums = [self._empty() for _ in range(channels * rows)]
        self.parts = [[self._empty() for _ in range(channels * rows)] for _ in range(SUMS)]

    def _places(self, first: ir.Value, step: ir.Value, many: int) -> list[ir.Value]:
        return [self.builder.add(first, self.builder.mul(step, _INT(n))) for n in range(many)]

    def _empty(self) -> ir.Value:
        place = cgutils.alloca_once(self.builder, _VECTOR)
        self.builder.store(ir.Constant(_VECTOR, None), place)
        return place

    def write(self, unpack: Callable[..., list[ir.Value]], features: str) -> None:
        """Write the instructions of the whole tile."""
        builder = self.builder
        self.unpack, self.features = unpack, features
        with cgutils.for_range(builder, self.groups, intp=_INT) as group:
            for part in self.parts:
                for place in part:
                    builder.store(ir.Constant(_VECTOR, None), place)
            self._group(builder.mul(group.index, self.span))
            self._scaled(builder.mul(group.index, _INT(4)))
        for number, place in enumerate(self.sums):
            channel, row = divmod(number, self.rows)
            address = builder.add(self.out, builder.add(builder.mul(self.out_step, _INT(row)), _INT(4 * channel)))
            total = lanes_added(builder, builder.load(place))
            builder.store(total, builder.inttoptr(address, _FLOAT.as_pointer()), align=4)

    def _group(self, first: ir.Value) -> None:
        """Add up the products of the group whose weights begin ``first`` bytes into the channel."""
        builder = self.builder
        lines = builder.and_(self.span, _INT(-LINE))
        with cgutils.for_range_slice(builder, _INT(0), lines, _INT(LINE), intp=_INT, inc=True) as (at, _):
            self._ask(builder.add(first, at))
            for k in range(LINE // LANES):
                self._sixteen(first, builder.add(at, _INT(k * LANES)), k % SUMS, None)
        rest = builder.sub(self.span, lines)
        with builder.if_then(builder.icmp_signed(">", rest, _INT(0))):
            self._ask(builder.add(first, lines))
            for k in range(LINE // LANES):
                left = builder.sub(rest, _INT(k * LANES))
                at = builder.add(lines, _INT(k * LANES))
                with builder.if_then(builder.icmp_signed(">=", left, _INT(LANES))):
                    self._sixteen(first, at, k % SUMS, None)
                few = builder.and_(builder.icmp_signed(">", left, _INT(0)), builder.icmp_signed("<", left, _INT(LANES)))
                with builder.if_then(few, likely=False):
                    order = ir.Constant(_LONGS, list(range(LANES)))
                    mask = builder.icmp_signed("<", order, _spread(builder, builder.trunc(left, _LONG)))
                    self._sixteen(first, at, k % SUMS, mask)

    def _ask(self, at: ir.Value) -> None:
        """Ask for what is needed next: of one channel a page ahead, of several the same place in the next tile."""
        builder = self.builder
        for weight in self.weights:
            place = builder.add(weight, at)
            if self.channels == 1:
                ask(builder, place, AHEAD)
            else:
                ask(builder, builder.add(place, builder.mul(self.weight_step, _INT(self.channels))))

    def _sixteen(self, first: ir.Value, at: ir.Value, turn: int, mask: ir.Value | None) -> None:
        """Add up the products of sixteen bytes of each channel, those ``at`` within the group that begins at ``first``.

        A byte of two halves holds weights of the first half of the group and of the second.
        """
        builder = self.builder
        for channel, weight in enumerate(self.weights):
            stored = _loaded(builder, builder.add(weight, builder.add(first, at)), _BYTES, mask)
            halves = self.unpack(builder, stored, self.features)
            for half, numbers in enumerate(halves):
                place = builder.add(
                    builder.mul(first, _INT(len(halves))), builder.add(at, builder.mul(self.span, _INT(half)))
                )
                for row, x in enumerate(self.x):
                    values = _loaded(builder, builder.add(x, builder.mul(place, _INT(4))), _VECTOR, mask)
                    part = self.parts[turn][channel * self.rows + row]
                    builder.store(_fused(builder, numbers, values, builder.load(part)), part)

    def _scaled(self, offset: ir.Value) -> None:
        """Add what a group gave, times its scale, to the sums."""
        builder = self.builder
        for channel, scale in enumerate(self.scales):
            factor = builder.load(builder.inttoptr(builder.add(scale, offset), _FLOAT.as_pointer()), align=4)
            spread = _spread(builder, factor)
            for number in range(channel * self.rows, (channel + 1) * self.rows):
                one, other = (builder.load(part[number]) for part in self.parts)
                total = self.sums[number]
                builder.store(_fused(builder, builder.fadd(one, other), spread, builder.load(total)), total)


def _tile_function(module: ir.Module, bits: int, channels: int, rows: int, features: str) -> ir.Function:
    name = f"orrery_quantised_{bits}_{channels}_{rows}"
    if name in module.globals:
        return module.globals[name]
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [_INT] * 10), name)
    function.linkage = "internal"
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    _Tile(builder, function.args, channels, rows).write(_eight_bits if bits == 8 else _four_bits, features)
    builder.ret_void()
    return function


def _tile(_context, bits, many, weight, weight_step, scale, scale_step, x, x_step, out, out_step, groups, span):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Compute one number of a product, or where ``many`` is not zero a tile of ``ROWS`` by ``CHANNELS`` of them."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        bits, many, *arguments = values
        features = context.codegen().magic_tuple()[2]
        for width in (8, 4):
            for is_many, shape in ((0, (1, 1)), (1, (CHANNELS, ROWS))):
                meant = builder.and_(
                    builder.icmp_signed("==", bits, _INT(width)), builder.icmp_signed("==", many, _INT(is_many))
                )
                with builder.if_then(meant):
                    builder.call(_tile_function(builder.module, width, *shape, features), arguments)
        return context.get_dummy_value()

    return types.void(*[types.int64] * 12), generate


tile: Any = intrinsic(inspect.unwrap(_tile))


@exactly_compiled
def channels(
    bits: int,
    weight: int,
    scale: int,
    groups: int,
    span: int,
    x: int,
    x_step: int,
    out: int,
    out_step: int,
    rows: int,
    first: int,
    last: int,
) -> None:
    """Compute the output channels from ``first`` to before ``last`` for all rows.

    Args:
        bits: 8 or 4.
        weight: address of the matrix.
        scale: address of the scales, in float32.
        groups: how many of a channel's share a scale each.
        span: bytes of weights of a group; with four bits a byte holds two weights.
        x: address of the rows, in float32.
        x_step: bytes from row to row.
        out: address of the results, in float32.
        out_step: bytes from row to row.
        rows: how many.
        first: the first output channel.
        last: the one after the last.
    """
    w_step, s_step = groups * span, 4 * groups
    tiled = rows - rows % ROWS
    paired = last - (last - first) % CHANNELS if tiled else first
    for o in range(first, paired, CHANNELS):
        w, s, to = weight + o * w_step, scale + o * s_step, out + 4 * o
        for m in range(0, tiled, ROWS):
            tile(bits, 1, w, w_step, s, s_step, x + m * x_step, x_step, to + m * out_step, out_step, groups, span)
    for o in range(first, last):
        w, s, to = weight + o * w_step, scale + o * s_step, out + 4 * o
        for m in range(tiled if o < paired else 0, rows):
            tile(bits, 0, w, w_step, s, s_step, x + m * x_step, x_step, to + m * out_step, out_step, groups, span)


SHARED = 1 << 16
"""Multiplications from which on threads share a product: below, to meet takes them longer than the work."""
TOGETHER = 16
"""Output channels that one turn of the parallel loop computes: sixteen results are one line of memory."""


@in_parallel
def _shared_out(bits: int, w: int, s: int, x: int, out: int, sizes: NDArray[np.int64]) -> None:
    """Compute a whole product; ``sizes`` are its channels, rows, groups and the bytes of a group."""
    outputs, rows, groups, span = sizes
    width = groups * span * (8 // bits)
    if outputs * width * rows < SHARED:
        channels(bits, w, s, groups, span, x, 4 * width, out, 4 * outputs, rows, 0, outputs)
        return
    for turn in numba.prange((outputs + TOGETHER - 1) // TOGETHER):
        first = turn * TOGETHER
        last = min(outputs, first + TOGETHER)
        channels(bits, w, s, groups, span, x, 4 * width, out, 4 * outputs, rows, first, last)


def compile_product() -> None:
    """Compile what ``product`` calls, or load it."""
    kernel: Any = _shared_out
    kernel.compile((*[types.int64] * 5, types.int64[::1]))


def product(weight: NDArray[Any], scale: NDArray[np.float32], x: NDArray[np.float32], out: NDArray[np.float32]) -> None:
    """Write ``x W^T`` into ``out``; all arrays are contiguous.

    Args:
        weight: int8 ``[out, in]``, or uint8 ``[out, in / 2]`` with four bits a weight.
        scale: ``[out, groups]``.
        x: rows ``[M, in]``; for more than 32 a product with the written-out matrix is faster.
        out: ``[M, out]``.
    """
    groups = scale.shape[1]
    sizes = np.array([len(weight), len(x), groups, weight.shape[1] // groups])
    bits = 8 if weight.dtype == np.int8 else 4
    _shared_out(bits, weight.ctypes.data, scale.ctypes.data, x.ctypes.data, out.ctypes.data, sizes)
