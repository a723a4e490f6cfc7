"""Products of a few rows with a matrix that is stored in the blocks of a GGUF file, which is read once.

Needs numba with its OpenMP layer. The specification is the product with the numbers that ``checkpoints.gguf_blocks``
makes of the blocks: ``out[m, o] = sum_j W[o, j] x[m, j]``, in float32. A block is decoded sixteen numbers at a time,
each of which is multiplied for every row before the next are decoded.

As in ``quantised`` the order of every sum stands here, not with the compiler: four sums by turns, added in pairs, then
the sixteen lanes in halves. A row is bit for bit the same alone and in any batch, for any number of threads.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from orrery.kernels.compiled import exactly_compiled, in_parallel
from orrery.kernels.prefetch import AHEAD, LINE, ask
from orrery.kernels.quantised import LANES, lanes_added
from orrery.kernels.step.codes import BLOCKS, FLOAT4

SUMS, ROWS = 4, 4
"""Sums of a row, and rows that are computed together."""

_INT, _LONG, _BYTE, _FLOAT, _HALF = ir.IntType(64), ir.IntType(32), ir.IntType(8), ir.FloatType(), ir.HalfType()
_BYTES, _LONGS, _VECTOR = (ir.VectorType(kind, LANES) for kind in (_BYTE, _LONG, _FLOAT))
_EIGHT_BYTES, _EIGHT_LONGS, _EIGHT = (ir.VectorType(kind, 8) for kind in (_BYTE, _LONG, _FLOAT))


class _Writer:
    """Instructions over sixteen numbers."""

    def __init__(self, builder: ir.IRBuilder, features: str) -> None:
        self.builder, self.looks_up = builder, "+avx512f" in features.split(",")

    def called(self, name: str, result: ir.Type, *values: ir.Value) -> ir.Value:
        shape = ir.FunctionType(result, [value.type for value in values])
        return self.builder.call(cgutils.get_or_insert_function(self.builder.module, shape, name), values)

    def loaded(self, kind: ir.Type, at: ir.Value, offset: int) -> ir.Value:
        """Return what stands ``offset`` bytes behind an address, which need not be aligned."""
        place = self.builder.inttoptr(self.builder.add(at, _INT(offset)), kind.as_pointer())
        return self.builder.load(place, align=1)

    def half(self, at: ir.Value, offset: int) -> ir.Value:
        """Return a float16 number as float32."""
        return self.builder.fpext(self.loaded(_HALF, at, offset), _FLOAT)

    def spread(self, value: ir.Value) -> ir.Value:
        """Return sixteen times a number."""
        undefined = ir.Constant(ir.VectorType(value.type, LANES), ir.Undefined)
        first = self.builder.insert_element(undefined, value, _LONG(0))
        return self.builder.shuffle_vector(first, undefined, ir.Constant(_LONGS, None))

    def lane(self, vector: ir.Value, number: int) -> ir.Value:
        """Return sixteen times one number of a vector."""
        undefined = ir.Constant(vector.type, ir.Undefined)
        return self.builder.shuffle_vector(vector, undefined, ir.Constant(_LONGS, [number] * LANES))

    def longs(self, at: ir.Value, offset: int) -> ir.Value:
        """Return sixteen bytes, each as a whole number of 32 bits."""
        return self.builder.zext(self.loaded(_BYTES, at, offset), _LONGS)

    def signed(self, at: ir.Value, offset: int) -> ir.Value:
        """Return sixteen bytes with their signs, as float32."""
        return self.builder.sitofp(self.builder.sext(self.loaded(_BYTES, at, offset), _LONGS), _VECTOR)

    def low(self, longs: ir.Value, less: int = 0) -> ir.Value:
        """Return the low four bits of each less a number, as float32."""
        if self.looks_up:  # in a table of sixteen, which sees the low four bits alone
            table = ir.Constant(_VECTOR, [float(number - less) for number in range(LANES)])
            return self.called("llvm.x86.avx512.permvar.sf.512", _VECTOR, table, longs)
        whole = self.builder.and_(longs, ir.Constant(_LONGS, [15] * LANES))
        floats = self.builder.sitofp(whole, _VECTOR)
        return self.builder.fsub(floats, self.constant(float(less))) if less else floats

    def float4(self, longs: ir.Value) -> ir.Value:
        """Return twice the number of MXFP4 that the low four bits of each stand for: a whole number."""
        if self.looks_up:
            table = ir.Constant(_VECTOR, [2 * sign * size for sign in (1, -1) for size in FLOAT4])
            return self.called("llvm.x86.avx512.permvar.sf.512", _VECTOR, table, longs)
        b, many = self.builder, lambda number: ir.Constant(_LONGS, [number] * LANES)

        def beyond(bound: int) -> ir.Value:
            rest = b.sub(size, many(bound))
            return b.select(b.icmp_signed(">", rest, many(0)), rest, many(0))

        size = b.and_(longs, many(7))
        whole = b.add(b.add(size, beyond(4)), b.shl(beyond(6), many(1)))  # 0, 1, 2, 3, 4, then 6 and 8, then 12
        signed = b.select(b.icmp_signed("!=", b.and_(longs, many(8)), many(0)), b.sub(many(0), whole), whole)
        return b.sitofp(signed, _VECTOR)

    def shifted(self, longs: ir.Value, bits: int) -> ir.Value:
        return self.builder.lshr(longs, ir.Constant(_LONGS, [bits] * LANES)) if bits else longs

    def constant(self, number: float) -> ir.Value:
        return ir.Constant(_VECTOR, [number] * LANES)

    def more_where(self, mask: ir.Value, value: ir.Value, number: float) -> ir.Value:
        """Return a value, with a number added where a mask says so."""
        return self.builder.select(mask, self.builder.fadd(value, self.constant(number)), value)

    def bit(self, longs: ir.Value, number: int) -> ir.Value:
        """Return a mask: where a bit is set."""
        masked = self.builder.and_(longs, ir.Constant(_LONGS, [1 << number] * LANES))
        return self.builder.icmp_signed("!=", masked, ir.Constant(_LONGS, None))

    def fused(self, a: ir.Value, b: ir.Value, c: ir.Value) -> ir.Value:
        return self.called("llvm.fma.v16f32", _VECTOR, a, b, c)

    def times(self, a: ir.Value, b: ir.Value) -> ir.Value:
        return self.builder.fmul(a, b)


Decoded = Iterator[tuple[int, ir.Value]]
"""Places in a block, multiples of sixteen, and the numbers from there on."""


def _q8_0(w: _Writer, at: ir.Value) -> Decoded:
    d = w.spread(w.half(at, 0))
    for k in (0, 16):
        yield k, w.times(d, w.signed(at, 2 + k))


def _q4_0(w: _Writer, at: ir.Value) -> Decoded:
    d, packed = w.spread(w.half(at, 0)), w.longs(at, 2)
    for k in (0, 1):
        yield 16 * k, w.times(d, w.low(w.shifted(packed, 4 * k), 8))


def _q4_1(w: _Writer, at: ir.Value) -> Decoded:
    d, m, packed = w.spread(w.half(at, 0)), w.spread(w.half(at, 2)), w.longs(at, 4)
    for k in (0, 1):
        yield 16 * k, w.fused(d, w.low(w.shifted(packed, 4 * k)), m)


def _mxfp4(w: _Writer, at: ir.Value) -> Decoded:
    """Scale by ``2^(e - 128)``, e the first byte; the two smallest scales are below float32's normal numbers."""
    b, exponent = w.builder, w.builder.zext(w.loaded(_BYTE, at, 0), _LONG)
    usual = b.shl(b.sub(exponent, _LONG(1)), _LONG(23))
    bits = b.select(b.icmp_unsigned(">", exponent, _LONG(1)), usual, b.shl(_LONG(1 << 21), exponent))
    d, packed = w.spread(b.bitcast(bits, _FLOAT)), w.longs(at, 1)
    for k in (0, 1):
        yield 16 * k, w.times(d, w.float4(w.shifted(packed, 4 * k)))


def _five_bits(w: _Writer, at: ir.Value, bits: int, rest: int, less: int) -> Iterator[tuple[int, ir.Value]]:
    """Return the 32 numbers whose fifth bits stand at ``bits`` and whose others stand at ``rest``."""
    fifth, packed = w.loaded(_LONG, at, bits), w.longs(at, rest)
    for k in (0, 1):
        part = w.builder.trunc(w.builder.lshr(fifth, _LONG(16 * k)), ir.IntType(16))
        mask = w.builder.bitcast(part, ir.VectorType(ir.IntType(1), LANES))
        yield 16 * k, w.more_where(mask, w.low(w.shifted(packed, 4 * k), less), 16.0)


def _q5_0(w: _Writer, at: ir.Value) -> Decoded:
    d = w.spread(w.half(at, 0))
    for place, number in _five_bits(w, at, 2, 6, 16):
        yield place, w.times(d, number)


def _q5_1(w: _Writer, at: ir.Value) -> Decoded:
    d, m = w.spread(w.half(at, 0)), w.spread(w.half(at, 2))
    for place, number in _five_bits(w, at, 4, 8, 0):
        yield place, w.fused(d, number, m)


def _sixes(w: _Writer, at: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Return the eight scales and the eight least numbers of a block of Q4_K or Q5_K, the latter negated."""
    b = w.builder
    low, middle, high = (w.loaded(_LONG, at, offset) for offset in (4, 8, 12))

    def joined(first: ir.Value, second: ir.Value, factor: ir.Value) -> ir.Value:
        both = b.or_(b.zext(first, _INT), b.shl(b.zext(second, _INT), _INT(32)))
        number = b.uitofp(b.zext(b.bitcast(both, _EIGHT_BYTES), _EIGHT_LONGS), _EIGHT)
        undefined = ir.Constant(_EIGHT, ir.Undefined)
        spread = b.shuffle_vector(
            b.insert_element(undefined, factor, _LONG(0)), undefined, ir.Constant(_EIGHT_LONGS, None)
        )
        return b.fmul(number, spread)

    def upper(shifted: ir.Value, with_two: ir.Value) -> ir.Value:
        return b.or_(b.and_(shifted, _LONG(0x0F0F0F0F)), b.and_(b.lshr(with_two, _LONG(2)), _LONG(0x30303030)))

    six = _LONG(0x3F3F3F3F)
    scales = joined(b.and_(low, six), upper(high, low), w.half(at, 0))
    least = joined(b.and_(middle, six), upper(b.lshr(high, _LONG(4)), middle), b.fneg(w.half(at, 2)))
    return scales, least


def _q4_k(w: _Writer, at: ir.Value) -> Decoded:
    scales, least = _sixes(w, at)
    for j in range(4):
        packed = [w.longs(at, 16 + 32 * j + k) for k in (0, 16)]
        for high in (0, 1):
            part = 2 * j + high
            d, m = w.lane(scales, part), w.lane(least, part)
            for k in (0, 1):
                yield 32 * part + 16 * k, w.fused(d, w.low(w.shifted(packed[k], 4 * high)), m)


def _q5_k(w: _Writer, at: ir.Value) -> Decoded:
    scales, least = _sixes(w, at)
    fifth = [w.longs(at, 16 + k) for k in (0, 16)]
    for j in range(4):
        packed = [w.longs(at, 48 + 32 * j + k) for k in (0, 16)]
        for high in (0, 1):
            part = 2 * j + high
            d, m = w.lane(scales, part), w.lane(least, part)
            for k in (0, 1):
                number = w.more_where(w.bit(fifth[k], part), w.low(w.shifted(packed[k], 4 * high)), 16.0)
                yield 32 * part + 16 * k, w.fused(d, number, m)


def _q6_k(w: _Writer, at: ir.Value) -> Decoded:
    b = w.builder
    scales = w.times(w.spread(w.half(at, 208)), w.signed(at, 192))
    for half in (0, 1):
        upper = [w.longs(at, 128 + 32 * half + k) for k in (0, 16)]
        lower = [w.longs(at, 64 * half + k) for k in (0, 16, 32, 48)]
        for part in range(4):
            for k in (0, 1):
                low = b.and_(w.shifted(lower[2 * (part & 1) + k], 4 * (part >> 1)), ir.Constant(_LONGS, [15] * LANES))
                two = b.and_(w.shifted(upper[k], 2 * part), ir.Constant(_LONGS, [3] * LANES))
                whole = b.or_(low, b.shl(two, ir.Constant(_LONGS, [4] * LANES)))
                number = b.sitofp(b.sub(whole, ir.Constant(_LONGS, [32] * LANES)), _VECTOR)
                yield 128 * half + 32 * part + 16 * k, w.times(w.lane(scales, 8 * half + 2 * part + k), number)


KINDS: dict[str, tuple[int, int, Callable[[_Writer, ir.Value], Decoded]]] = {
    "Q4_0": (32, 18, _q4_0), "Q4_1": (32, 20, _q4_1), "Q5_0": (32, 22, _q5_0), "Q5_1": (32, 24, _q5_1),
    "Q8_0": (32, 34, _q8_0), "Q4_K": (256, 144, _q4_k), "Q5_K": (256, 176, _q5_k), "Q6_K": (256, 210, _q6_k),
    "MXFP4": (32, 17, _mxfp4),
}  # fmt: skip
"""By ggml's name: numbers of a block, its bytes, and what decodes it."""
NUMBERS = {name: number for number, name in enumerate(BLOCKS)}
"""The number by which the compiled functions know a kind."""


def _loop(builder: ir.IRBuilder, blocks: ir.Value) -> Any:
    return cgutils.for_range(builder, blocks, intp=_INT)


def _function(module: ir.Module, name: str, arguments: int) -> tuple[ir.Function, ir.IRBuilder]:
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [_INT] * arguments), name)
    function.linkage = "internal"
    return function, ir.IRBuilder(function.append_basic_block("entry"))


def _product_function(module: ir.Module, kind: str, rows: int, features: str) -> ir.Function:
    """Return the function that multiplies one channel with some rows.

    Its arguments are the address of the channel, its blocks, the address of the first row and the bytes to the next,
    and where the results go.
    """
    name = f"orrery_blocks_{kind}_{rows}"
    if name in module.globals:
        return module.globals[name]
    function, builder = _function(module, name, 6)
    weight, blocks, x, x_step, out, out_step = function.args
    size, stored, decode = KINDS[kind]
    writer = _Writer(builder, features)
    sums = [[cgutils.alloca_once(builder, _VECTOR) for _ in range(SUMS)] for _ in range(rows)]
    for place in (place for row in sums for place in row):
        builder.store(ir.Constant(_VECTOR, None), place)
    with _loop(builder, blocks) as block:
        at = builder.add(weight, builder.mul(block.index, _INT(stored)))
        for line in range(0, stored, LINE):
            ask(builder, at, AHEAD + line)
        begins = [
            builder.add(builder.add(x, builder.mul(x_step, _INT(row))), builder.mul(block.index, _INT(4 * size)))
            for row in range(rows)
        ]
        for turn, (place, numbers) in enumerate(decode(writer, at)):
            for begin, own in zip(begins, sums, strict=True):
                total = own[turn % SUMS]
                values = writer.loaded(_VECTOR, begin, 4 * place)
                builder.store(writer.fused(numbers, values, builder.load(total)), total)
    for row, own in enumerate(sums):
        first, second, third, fourth = (builder.load(place) for place in own)
        both = builder.fadd(builder.fadd(first, second), builder.fadd(third, fourth))
        address = builder.add(out, builder.mul(out_step, _INT(row)))
        builder.store(lanes_added(builder, both), builder.inttoptr(address, _FLOAT.as_pointer()), align=4)
    builder.ret_void()
    return function


def _decode_function(module: ir.Module, kind: str, features: str) -> ir.Function:
    """Return the function that writes out blocks in float32: their address, how many, and where the numbers go."""
    name = f"orrery_decoded_{kind}"
    if name in module.globals:
        return module.globals[name]
    function, builder = _function(module, name, 3)
    weight, blocks, out = function.args
    size, stored, decode = KINDS[kind]
    writer = _Writer(builder, features)
    with _loop(builder, blocks) as block:
        at = builder.add(weight, builder.mul(block.index, _INT(stored)))
        to = builder.add(out, builder.mul(block.index, _INT(4 * size)))
        for place, numbers in decode(writer, at):
            address = builder.add(to, _INT(4 * place))
            builder.store(numbers, builder.inttoptr(address, _VECTOR.as_pointer()), align=4)
    builder.ret_void()
    return function


def _switched(builder: Any, number: Any, call: Callable[[str], None]) -> None:
    """Call for the kind that a number means."""
    for kind, own in NUMBERS.items():
        with builder.if_then(builder.icmp_signed("==", number, _INT(own))):
            call(kind)


def _multiply(_context, number, rows, weight, blocks, x, x_step, out, out_step):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Multiply a channel with one row, or with ``ROWS`` of them where ``rows`` is not one."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        number, rows, *arguments = values
        features = context.codegen().magic_tuple()[2]
        for many in (1, ROWS):
            with builder.if_then(builder.icmp_signed("==", rows, _INT(many))):
                _switched(
                    builder,
                    number,
                    lambda kind, many=many: builder.call(  # type: ignore[misc]
                        _product_function(builder.module, kind, many, features), arguments
                    ),
                )
        return context.get_dummy_value()

    return types.void(*[types.int64] * 8), generate


def _decode(_context, number, weight, blocks, out):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Write out blocks in float32."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        number, *arguments = values
        features = context.codegen().magic_tuple()[2]
        _switched(
            builder,
            number,
            lambda kind: builder.call(_decode_function(builder.module, kind, features), arguments),
        )
        return context.get_dummy_value()

    return types.void(*[types.int64] * 4), generate


multiplied: Any = intrinsic(_multiply)
decoded: Any = intrinsic(_decode)


@exactly_compiled
def channels(
    kind: int, weight: int, step: int, blocks: int, x: int, x_step: int, out: int, out_step: int, rows: int, first: int,
    last: int,
) -> None:  # fmt: skip
    """Compute the output channels from ``first`` to before ``last`` for all rows.

    Args:
        kind: by its number.
        weight: address of the matrix.
        step: bytes from channel to channel.
        blocks: of a channel.
        x: address of the rows, in float32.
        x_step: bytes from row to row.
        out: address of the results, in float32.
        out_step: bytes from row to row.
        rows: how many.
        first: the first output channel.
        last: the one after the last.
    """
    in_groups = rows - rows % ROWS
    for o in range(first, last):
        own, to = weight + o * step, out + 4 * o
        for m in range(0, in_groups, ROWS):
            multiplied(kind, ROWS, own, blocks, x + m * x_step, x_step, to + m * out_step, out_step)
        for m in range(in_groups, rows):
            multiplied(kind, 1, own, blocks, x + m * x_step, x_step, to + m * out_step, out_step)


SHARED = 1 << 16
"""Multiplications from which on threads share a product: below, to meet takes them longer than the work."""
TOGETHER = 16
"""Output channels that one turn of the parallel loop computes: sixteen results are one line of memory."""


@in_parallel
def _product(kind: int, weight: int, x: int, out: int, sizes: NDArray[np.int64]) -> None:
    """Compute a whole product; ``sizes`` are its channels, rows, bytes of a channel, blocks of one and its width."""
    outputs, rows, step, blocks, width = sizes
    if outputs * width * rows < SHARED:
        channels(kind, weight, step, blocks, x, 4 * width, out, 4 * outputs, rows, 0, outputs)
        return
    for turn in numba.prange((outputs + TOGETHER - 1) // TOGETHER):
        first = turn * TOGETHER
        last = min(outputs, first + TOGETHER)
        channels(kind, weight, step, blocks, x, 4 * width, out, 4 * outputs, rows, first, last)


@in_parallel
def _written(kind: int, weight: int, out: int, sizes: NDArray[np.int64]) -> None:
    """Write out a matrix; ``sizes`` are its channels, bytes of a channel, blocks of one and its width."""
    outputs, step, blocks, width = sizes
    for turn in numba.prange((outputs + TOGETHER - 1) // TOGETHER):
        first = turn * TOGETHER
        last = min(outputs, first + TOGETHER)
        decoded(kind, weight + first * step, (last - first) * blocks, out + 4 * first * width)


def compile_blocks() -> None:
    """Compile what this module calls, or load it."""
    product: Any = _product
    writer: Any = _written
    product.compile((*[types.int64] * 4, types.int64[::1]))
    writer.compile((*[types.int64] * 3, types.int64[::1]))


def product(kind: str, weight: NDArray[np.uint8], x: NDArray[np.float32], out: NDArray[np.float32]) -> None:
    """Write ``x W^T`` into ``out``; all arrays are contiguous.

    Args:
        kind: of the blocks, one of ``KINDS``.
        weight: ``[out, bytes of a row]``.
        x: rows ``[M, in]``; for more than 32 a product with the written-out matrix is faster.
        out: ``[M, out]``.
    """
    size, stored, _ = KINDS[kind]
    blocks = weight.shape[1] // stored
    sizes = np.array([len(weight), len(x), weight.shape[1], blocks, blocks * size])
    _product(NUMBERS[kind], weight.ctypes.data, x.ctypes.data, out.ctypes.data, sizes)


def write_out(kind: str, weight: NDArray[np.uint8], out: NDArray[np.float32]) -> None:
    """Write the numbers of blocks ``[out, bytes of a row]`` into ``out`` ``[out, in]``; both are contiguous."""
    size, stored, _ = KINDS[kind]
    blocks = weight.shape[1] // stored
    sizes = np.array([len(weight), weight.shape[1], blocks, blocks * size])
    _written(NUMBERS[kind], weight.ctypes.data, out.ctypes.data, sizes)
