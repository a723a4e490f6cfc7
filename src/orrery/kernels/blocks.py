"""Products of a few rows with a matrix that is stored in the blocks of a GGUF file, which is read once.

Needs numba with its OpenMP layer. The specification is the product with the numbers that ``checkpoints.gguf_blocks``
makes of the blocks: ``out[m, o] = sum_j W[o, j] x[m, j]``, in float32. A block is decoded sixteen numbers at a time,
each of which is multiplied for every row before the next are decoded.

As in ``quantised`` the order of every sum stands here, not with the compiler (``block_products`` says which). A row is
bit for bit the same alone and in any batch, for any number of threads.
"""

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from orrery.kernels.block_kinds import INT as _INT
from orrery.kernels.block_kinds import KINDS, NUMBERS, VECTOR, Floats, function_of
from orrery.kernels.block_products import ROWS, preparation, product_function, weights
from orrery.kernels.compiled import exactly_compiled, in_parallel
from orrery.kernels.step.codes import TURN, prepared_width


def _decode_function(module: ir.Module, kind: str, features: str) -> ir.Function:
    """Return the function that writes out blocks in float32: their address, how many, and where the numbers go."""
    name = f"orrery_decoded_{kind}"
    if name in module.globals:
        return module.globals[name]
    function, builder = function_of(module, name, 3)
    weight, blocks, out = function.args
    size, stored, decode = KINDS[kind]
    writer = Floats(builder, features)
    with cgutils.for_range(builder, blocks, intp=_INT) as block:
        at = builder.add(weight, builder.mul(block.index, _INT(stored)))
        to = builder.add(out, builder.mul(block.index, _INT(4 * size)))
        decoded_block = decode(writer, at)
        for place, part, number in decoded_block.numbers:
            address = builder.inttoptr(builder.add(to, _INT(4 * place)), VECTOR.as_pointer())
            builder.store(weights(writer, decoded_block, part, number), address, align=4)
    builder.ret_void()
    return function


def _switched(builder: Any, number: Any, call: Callable[[str], None]) -> None:
    """Call for the kind that a number means."""
    for kind, own in NUMBERS.items():
        with builder.if_then(builder.icmp_signed("==", number, _INT(own))):
            call(kind)


def _multiply(_context, number, rows, weight, step, many, blocks, x, x_step, out, out_step):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Multiply ``many`` channels with one row, or with ``ROWS`` of them where ``rows`` is not one."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        number, rows, *arguments = values
        features = context.codegen().magic_tuple()[2]
        for many in (1, ROWS):
            with builder.if_then(builder.icmp_signed("==", rows, _INT(many))):
                _switched(
                    builder,
                    number,
                    lambda kind, many=many: builder.call(  # type: ignore[misc]
                        product_function(builder.module, kind, many, features), arguments
                    ),
                )
        return context.get_dummy_value()

    return types.void(*[types.int64] * 10), generate


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


def _prepare(_context, x, out, count):  # type: ignore[no-untyped-def]  # pragma: no cover
    """Prepare a row of ``count`` numbers for products with any matrix in blocks."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        builder.call(preparation(builder.module, context.codegen().magic_tuple()[2]), values)
        return context.get_dummy_value()

    return types.void(*[types.int64] * 3), generate


prepared: Any = intrinsic(_prepare)
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
        x: address of the rows, each as `prepared` leaves it.
        x_step: bytes from row to row.
        out: address of the results, in float32.
        out_step: bytes from row to row.
        rows: how many.
        first: the first output channel.
        last: the one after the last.
    """
    in_groups = rows - rows % ROWS
    own, to, many = weight + first * step, out + 4 * first, last - first
    for m in range(0, in_groups, ROWS):
        multiplied(kind, ROWS, own, step, many, blocks, x + m * x_step, x_step, to + m * out_step, out_step)
    for m in range(in_groups, rows):
        multiplied(kind, 1, own, step, many, blocks, x + m * x_step, x_step, to + m * out_step, out_step)


SHARED = 1 << 16
"""Multiplications from which on threads share a product: below, to meet takes them longer than the work."""


@in_parallel
def _product(kind: int, weight: int, x: int, ready: int, out: int, sizes: NDArray[np.int64]) -> None:
    """Compute a whole product; ``ready`` is room for the prepared rows.

    ``sizes`` are its channels, rows, bytes of a channel, blocks of one, its width and the bytes of a prepared row.
    """
    outputs, rows, step, blocks, width, apart = sizes
    for row in range(rows):
        prepared(x + 4 * width * row, ready + apart * row, width)
    if outputs * width * rows < SHARED:
        channels(kind, weight, step, blocks, ready, apart, out, 4 * outputs, rows, 0, outputs)
        return
    for turn in numba.prange((outputs + TURN - 1) // TURN):
        first = turn * TURN
        last = min(outputs, first + TURN)
        channels(kind, weight, step, blocks, ready, apart, out, 4 * outputs, rows, first, last)


@in_parallel
def _written(kind: int, weight: int, out: int, sizes: NDArray[np.int64]) -> None:
    """Write out a matrix; ``sizes`` are its channels, bytes of a channel, blocks of one and its width."""
    outputs, step, blocks, width = sizes
    for turn in numba.prange((outputs + TURN - 1) // TURN):
        first = turn * TURN
        last = min(outputs, first + TURN)
        decoded(kind, weight + first * step, (last - first) * blocks, out + 4 * first * width)


def compile_blocks() -> None:
    """Compile what this module calls, or load it."""
    product: Any = _product
    writer: Any = _written
    product.compile((*[types.int64] * 5, types.int64[::1]))
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
    ready = np.empty((len(x) + 1, prepared_width(blocks * size)), np.float32)  # one more: it begins at a multiple of 64
    sizes = np.array([len(weight), len(x), weight.shape[1], blocks, blocks * size, ready.strides[0]])
    _product(
        NUMBERS[kind],
        weight.ctypes.data,
        x.ctypes.data,
        ready.ctypes.data + -ready.ctypes.data % 64,
        out.ctypes.data,
        sizes,
    )


def write_out(kind: str, weight: NDArray[np.uint8], out: NDArray[np.float32]) -> None:
    """Write the numbers of blocks ``[out, bytes of a row]`` into ``out`` ``[out, in]``; both are contiguous."""
    size, stored, _ = KINDS[kind]
    blocks = weight.shape[1] // stored
    sizes = np.array([len(weight), weight.shape[1], blocks, blocks * size])
    _written(NUMBERS[kind], weight.ctypes.data, out.ctypes.data, sizes)
