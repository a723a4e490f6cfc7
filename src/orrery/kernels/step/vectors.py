"""Products written out in vectors of sixteen: the order of every sum stands in the code, not with the compiler.

Each number of a product is the sum over sixteen lanes, lane l of which adds up the terms l, l + 16, l + 32, ... in
that order, by fused multiply-adds in float32; the lanes are then added in halves. Where a processor multiplies
bfloat16 numbers itself, lane l adds up the pairs (2l, 2l + 1), (2l + 32, 2l + 33), ... How many rows are computed at
once changes nothing of it, so that a row is bit for bit the same alone and in any batch.

All places are addresses: the functions serve inside parallel loops, where numba's own views of addresses do not.
"""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, final

from llvmlite import ir
from llvmlite.binding import get_host_cpu_features
from numba.core import cgutils, types
from numba.extending import intrinsic

from orrery.kernels.prefetch import AHEAD, ask
from orrery.kernels.step.compiling import config

LANES = 16
CHANNELS = 4
"""Rows of a matrix that are read side by side, so that one sum need not wait for another."""
ROWS = 4
"""Rows of activations for which a matrix is read at once; more are served from the cache."""
PIECES = 4
"""Times sixteen channels of a weighted sum that are computed side by side."""

FLOAT32, BFLOAT16, PAIRS = range(3)
"""How a product's numbers are stored: both sides in float32, keys in bfloat16 beside a query in float32, both sides in
bfloat16."""

_INT, _BYTE, _WORD, _LONG = ir.IntType(64), ir.IntType(8), ir.IntType(16), ir.IntType(32)
_FLOAT = ir.FloatType()
_VECTOR = ir.VectorType(_FLOAT, LANES)


class _Weights(NamedTuple):
    """How sixteen stored numbers become a vector: their type in memory, their bytes, and the conversion."""

    stored: ir.Type
    size: int
    widen: Callable[[ir.IRBuilder, ir.Value], ir.Value]


def _same(builder: ir.IRBuilder, value: ir.Value) -> ir.Value:
    return value


def _shifted(builder: ir.IRBuilder, value: ir.Value) -> ir.Value:
    """Return bfloat16 numbers as float32: the same bits, and sixteen zeros behind them."""
    lanes = value.type.count
    wide = ir.VectorType(_LONG, lanes)
    shift = ir.Constant(wide, [16] * lanes)
    return builder.bitcast(builder.shl(builder.zext(value, wide), shift), ir.VectorType(_FLOAT, lanes))


def bfloat16(builder: ir.IRBuilder, value: ir.Value) -> ir.Value:
    """Return the bits of one number or several in bfloat16, rounded to the nearest, ties to even."""
    vector = isinstance(value.type, ir.VectorType)

    def of(kind: ir.Type, number: int | None = None) -> Any:
        kind = ir.VectorType(kind, value.type.count) if vector else kind
        return kind if number is None else ir.Constant(kind, [number] * value.type.count if vector else number)

    bits = builder.bitcast(value, of(_LONG))
    high = builder.lshr(bits, of(_LONG, 16))
    rounded = builder.lshr(
        builder.add(builder.add(bits, of(_LONG, 0x7FFF)), builder.and_(high, of(_LONG, 1))), of(_LONG, 16)
    )
    quiet = builder.or_(high, of(_LONG, 64))
    is_number = builder.fcmp_ordered("ord", value, value)
    return builder.trunc(builder.select(is_number, rounded, quiet), of(_WORD))


WEIGHTS = {FLOAT32: _Weights(_FLOAT, 4, _same), BFLOAT16: _Weights(_WORD, 2, _shifted)}


def _address(builder: ir.IRBuilder, base: ir.Value, offset: ir.Value, kind: ir.Type) -> ir.Value:
    return builder.inttoptr(builder.add(base, offset), kind.as_pointer())


def _fused(builder: ir.IRBuilder, a: ir.Value, b: ir.Value, c: ir.Value) -> ir.Value:
    """Return ``a b + c``, rounded once."""
    shape = ir.FunctionType(a.type, [a.type] * 3)
    function = cgutils.get_or_insert_function(builder.module, shape, f"llvm.fma.v{a.type.count}f32")
    return builder.call(function, [a, b, c])


def load(
    builder: ir.IRBuilder, weights: _Weights, base: ir.Value, offset: ir.Value, mask: ir.Value | None,
    lanes: int = LANES,
) -> ir.Value:  # fmt: skip
    """Return numbers as float32, zeros where the mask hides them."""
    kind = ir.VectorType(weights.stored, lanes)
    place = _address(builder, base, offset, kind)
    if mask is None:
        value = builder.load(place, align=weights.size)
    else:
        name = f"llvm.masked.load.v{lanes}{'f32' if weights.stored is _FLOAT else f'i{8 * weights.size}'}.p0"
        shape = ir.FunctionType(kind, [kind.as_pointer(), _LONG, mask.type, kind])
        function = cgutils.get_or_insert_function(builder.module, shape, name)
        value = builder.call(function, [place, _LONG(weights.size), mask, ir.Constant(kind, None)])
    return weights.widen(builder, value)


def first_lanes(builder: ir.IRBuilder, count: ir.Value, many: int = LANES) -> ir.Value:
    """Return the mask of the first ``count`` of so many lanes."""
    lanes = ir.Constant(ir.VectorType(_INT, many), list(range(many)))
    return builder.icmp_signed("<", lanes, spread(builder, count, many))


def total(builder: ir.IRBuilder, vector: ir.Value) -> ir.Value:
    """Return the sum of the lanes, added in halves."""
    width = LANES
    while width > 1:
        width //= 2
        parts = [
            builder.shuffle_vector(
                vector,
                ir.Constant(vector.type, ir.Undefined),
                ir.Constant(ir.VectorType(_LONG, width), list(range(at, at + width))),
            )
            for at in (0, width)
        ]
        vector = builder.fadd(*parts)
    return builder.extract_element(vector, _LONG(0))


def totals(builder: ir.IRBuilder, several: Sequence[ir.Value]) -> ir.Value:
    """Return the totals of up to sixteen vectors as one vector in their order, each added in halves as `total` does."""
    vectors = [*several, *[ir.Constant(_VECTOR, None)] * (LANES - len(several))]
    width = LANES
    while width > 1:
        width //= 2
        first = [at + lane for at in range(0, 2 * LANES, 2 * width) for lane in range(width)]
        halves = [ir.Constant(ir.VectorType(_LONG, LANES), [at + by for at in first]) for by in (0, width)]
        vectors = [
            builder.fadd(*(builder.shuffle_vector(one, other, half) for half in halves))
            for one, other in zip(vectors[::2], vectors[1::2], strict=True)
        ]
    return vectors[0]


class _Terms(ABC):
    """What an iteration of a dot product adds: ``many`` terms, from a place on.

    Where fewer are left, their number is given, and what lies behind them is not read.
    """

    many: int
    weights: _Weights
    activations: _Weights
    lanes = LANES

    @abstractmethod
    def taken(
        self, builder: ir.IRBuilder, how: _Weights, base: ir.Value, place: ir.Value, left: ir.Value | None
    ) -> ir.Value:
        """Return numbers of the matrix or of the activations, which are stored as ``how`` says."""

    @abstractmethod
    def added(self, builder: ir.IRBuilder, w: ir.Value, x: ir.Value, sums: ir.Value) -> ir.Value:
        """Return the sixteen sums with the products."""


@final
class _Single(_Terms):
    """Of sixteen products in float32, one to each lane, those of some neighbouring lanes."""

    many = LANES

    def __init__(self, weights: _Weights, activations: _Weights, first: int = 0, lanes: int = LANES) -> None:
        self.weights, self.activations, self.first, self.lanes = weights, activations, first, lanes

    def taken(
        self, builder: ir.IRBuilder, how: _Weights, base: ir.Value, place: ir.Value, left: ir.Value | None
    ) -> ir.Value:
        mask = None if left is None else first_lanes(builder, builder.sub(left, _INT(self.first)), self.lanes)
        offset = builder.mul(builder.add(place, _INT(self.first)), _INT(how.size))
        return load(builder, how, base, offset, mask, self.lanes)

    def added(self, builder: ir.IRBuilder, w: ir.Value, x: ir.Value, sums: ir.Value) -> ir.Value:
        return _fused(builder, w, x, sums)


@final
class _Paired(_Terms):
    """Thirty-two products of bfloat16 numbers, two neighbours to each lane, by the processor's own instruction."""

    many = 2 * LANES
    weights = activations = _Weights(_WORD, 2, _same)

    def taken(
        self, builder: ir.IRBuilder, how: _Weights, base: ir.Value, place: ir.Value, left: ir.Value | None
    ) -> ir.Value:
        halves = []
        for at in (0, LANES):
            mask = None if left is None else first_lanes(builder, builder.sub(left, _INT(at)))
            halves.append(load(builder, how, base, builder.mul(builder.add(place, _INT(at)), _INT(2)), mask))
        both = builder.shuffle_vector(*halves, ir.Constant(ir.VectorType(_LONG, self.many), list(range(self.many))))
        return builder.bitcast(both, _PAIRS)

    def added(self, builder: ir.IRBuilder, w: ir.Value, x: ir.Value, sums: ir.Value) -> ir.Value:
        shape = ir.FunctionType(_VECTOR, [_VECTOR, _PAIRS, _PAIRS])
        function = cgutils.get_or_insert_function(builder.module, shape, "llvm.x86.avx512bf16.dpbf16ps.512")
        return builder.call(function, [sums, w, x])


def _has(feature: str) -> bool:
    """Say whether the processor that numba compiles for has an extension."""
    if config.CPU_NAME is not None or config.CPU_FEATURES is not None:
        return f"+{feature}" in (config.CPU_FEATURES or "")
    return bool(get_host_cpu_features().get(feature))


_PAIRS = ir.VectorType(_LONG, LANES)
TERMS: dict[int, _Terms] = {
    FLOAT32: _Single(WEIGHTS[FLOAT32], WEIGHTS[FLOAT32]),
    BFLOAT16: _Single(WEIGHTS[BFLOAT16], WEIGHTS[FLOAT32]),
    PAIRS: _Paired() if _has("avx512bf16") else _Single(WEIGHTS[BFLOAT16], WEIGHTS[BFLOAT16]),
}


def _passes(kind: int, channels: int, rows: int) -> Iterator[tuple[range, list[_Terms]]]:
    """Yield the rows whose sums are computed together, and the lanes of these, one after the other.

    Sixteen lanes of four channels in four rows fill half of AVX-512's registers. Elsewhere they are more than there
    are: two rows at a time, and of those first the lower lanes and then the upper ones, twice as fast on AVX2.
    Products of pairs, which only AVX-512 has, are never parted.
    """
    terms = TERMS[kind]
    if channels == 1 or terms.many > LANES or _has("avx512f"):
        yield range(rows), [terms]
        return
    half = LANES // 2
    halves: list[_Terms] = [_Single(terms.weights, terms.activations, first, half) for first in (0, half)]
    for first in range(0, rows, 2):
        yield range(first, min(rows, first + 2)), halves


def _block(module: ir.Module, kind: int, channels: int, rows: int) -> ir.Function:
    """Return the function of ``channels x rows`` dot products.

    Its arguments: address and bytes from row to row of the matrix, the same of the activations, the numbers of a row,
    address and bytes from row to row of the results.
    """
    name = f"orrery_products_{kind}_{channels}_{rows}"
    if name in module.globals:
        return module.globals[name]
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [_INT] * 7), name)
    function.linkage = "internal"
    matrix, matrix_step, vector, vector_step, length, out, out_step = function.args
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    w_at = [builder.add(matrix, builder.mul(matrix_step, _INT(r))) for r in range(channels)]
    x_at = [builder.add(vector, builder.mul(vector_step, _INT(b))) for b in range(rows)]
    behind = builder.mul(matrix_step, _INT(channels)) if channels > 1 else _INT(AHEAD)
    sums: list[list[ir.Value]] = []
    for together, parts in _passes(kind, channels, rows):
        own = [x_at[row] for row in together]
        lanes = [_summed(builder, terms, w_at, own, length, behind) for terms in parts]
        whole = [_joined(builder, of_lanes) for of_lanes in zip(*lanes, strict=True)]
        sums += [whole[at :: len(own)] for at in range(len(own))]
    _store_totals(builder, sums, out, out_step)
    builder.ret_void()
    return function


def _summed(
    builder: ir.IRBuilder, terms: _Terms, w_at: Sequence[ir.Value], x_at: Sequence[ir.Value], length: ir.Value,
    behind: ir.Value,
) -> list[ir.Value]:  # fmt: skip
    """Return the sums of all lanes of some rows of a matrix with some of the activations, those of one channel first.

    What lies ``behind`` is asked for as a place is read.
    """
    zeros = [ir.Constant(ir.VectorType(_FLOAT, terms.lanes), None)] * (len(w_at) * len(x_at))

    def added(sums: list[ir.Value], place: ir.Value, left: ir.Value | None) -> list[ir.Value]:
        if left is None:
            for at in w_at:
                ask(builder, builder.add(at, builder.add(builder.mul(place, _INT(terms.weights.size)), behind)))
        w = [terms.taken(builder, terms.weights, at, place, left) for at in w_at]
        x = [terms.taken(builder, terms.activations, at, place, left) for at in x_at]
        pairs = [(one, other) for one in w for other in x]
        return [terms.added(builder, *pair, old) for pair, old in zip(pairs, sums, strict=True)]

    in_vectors = builder.and_(length, _INT(-terms.many))
    sums = loop(builder, in_vectors, zeros, lambda held, place: added(held, place, None), terms.many)
    left = builder.sub(length, in_vectors)
    before, tail, end = builder.block, builder.append_basic_block("tail"), builder.append_basic_block("end")
    builder.cbranch(builder.icmp_signed(">", left, _INT(0)), tail, end)
    builder.position_at_end(tail)
    more = added(sums, in_vectors, left)
    builder.branch(end)
    builder.position_at_end(end)
    accumulators = []
    for old, new in zip(sums, more, strict=True):
        accumulators.append(builder.phi(old.type))
        accumulators[-1].add_incoming(old, before)
        accumulators[-1].add_incoming(new, tail)
    return accumulators


def _joined(builder: ir.IRBuilder, parts: Sequence[ir.Value]) -> ir.Value:
    """Return vectors of lanes as one; of one, itself."""
    if len(parts) == 1:
        return parts[0]
    lanes = ir.Constant(ir.VectorType(_LONG, LANES), list(range(LANES)))
    return builder.shuffle_vector(*parts, lanes)


def _store_totals(builder: ir.IRBuilder, sums: list[list[ir.Value]], out: ir.Value, out_step: ir.Value) -> None:
    """Store the sum of each vector; they are by row and channel."""
    channels = len(sums[0])
    if channels == 1:
        for row, (vector,) in enumerate(sums):
            builder.store(total(builder, vector), _address(builder, out, builder.mul(out_step, _INT(row)), _FLOAT))
        return
    sums_of_channels = totals(builder, [vector for of_row in sums for vector in of_row])
    few = ir.VectorType(_FLOAT, channels)
    for row in range(len(sums)):
        lanes = ir.Constant(ir.VectorType(_LONG, channels), list(range(row * channels, (row + 1) * channels)))
        value = builder.shuffle_vector(sums_of_channels, ir.Constant(_VECTOR, ir.Undefined), lanes)
        builder.store(value, _address(builder, out, builder.mul(out_step, _INT(row)), few), align=4)


def loop(
    builder: ir.IRBuilder,
    end: ir.Value,
    start: list[ir.Value],
    step: Callable[[list[ir.Value], ir.Value], list[ir.Value]],
    stride: int,
) -> list[ir.Value]:
    """Run ``step`` over every ``stride``-th place before ``end`` and return what the last one leaves."""
    before = builder.block
    body, after = builder.append_basic_block("loop"), builder.append_basic_block("after")
    builder.cbranch(builder.icmp_signed(">", end, _INT(0)), body, after)
    builder.position_at_end(body)
    place = builder.phi(_INT)
    place.add_incoming(_INT(0), before)
    held = []
    for value in start:
        phi = builder.phi(value.type)
        phi.add_incoming(value, before)
        held.append(phi)
    stepped = step(list(held), place)
    onwards = builder.add(place, _INT(stride))
    for phi, value in zip(held, stepped, strict=True):
        phi.add_incoming(value, builder.block)
    place.add_incoming(onwards, builder.block)
    last = builder.block
    builder.cbranch(builder.icmp_signed("<", onwards, end), body, after)
    builder.position_at_end(after)
    results = []
    for value, new in zip(start, stepped, strict=True):
        phi = builder.phi(value.type)
        phi.add_incoming(value, before)
        phi.add_incoming(new, last)
        results.append(phi)
    return results


def _mixture(module: ir.Module, kind: int, pieces: int, rows: int) -> ir.Function:
    """Return the function of ``rows`` weighted sums of vectors, for ``pieces`` times sixteen channels of them.

    Its arguments: address and bytes from vector to vector, the same of the weights from row to row, the number of
    vectors, address and bytes from row to row of the results, and the channels: all of them, or fewer than sixteen
    where there is one piece. A sum is taken from the first vector to the last.
    """
    name = f"orrery_mixture_{kind}_{pieces}_{rows}"
    if name in module.globals:
        return module.globals[name]
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [_INT] * 8), name)
    function.linkage = "internal"
    vectors, vector_step, shares, share_step, length, out, out_step, channels = function.args
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    mask = first_lanes(builder, channels) if pieces == 1 else None
    weights = WEIGHTS[kind]
    pairs = [(piece, row) for piece in range(pieces) for row in range(rows)]

    def added(sums: list[ir.Value], place: ir.Value) -> list[ir.Value]:
        at = builder.add(vectors, builder.mul(vector_step, place))
        v = [load(builder, weights, at, _INT(piece * LANES * weights.size), mask) for piece in range(pieces)]
        p = []
        for row in range(rows):
            offset = builder.add(builder.mul(share_step, _INT(row)), builder.mul(place, _INT(4)))
            p.append(spread(builder, builder.load(_address(builder, shares, offset, _FLOAT))))
        return [_fused(builder, v[c], p[r], old) for (c, r), old in zip(pairs, sums, strict=True)]

    sums = loop(builder, length, [ir.Constant(_VECTOR, None)] * len(pairs), added, 1)
    for (piece, row), value in zip(pairs, sums, strict=True):
        place = builder.add(builder.mul(out_step, _INT(row)), _INT(4 * LANES * piece))
        target = _address(builder, out, place, _VECTOR)
        if mask is None:
            builder.store(value, target, align=4)
        else:
            shape = ir.FunctionType(ir.VoidType(), [_VECTOR, target.type, _LONG, mask.type])
            store = cgutils.get_or_insert_function(builder.module, shape, "llvm.masked.store.v16f32.p0")
            builder.call(store, [value, target, _LONG(4), mask])
    builder.ret_void()
    return function


def spread(builder: ir.IRBuilder, value: ir.Value, lanes: int = LANES) -> ir.Value:
    """Return a vector whose lanes are all the same."""
    vector = ir.VectorType(value.type, lanes)
    first = builder.insert_element(ir.Constant(vector, ir.Undefined), value, _LONG(0))
    zeros = ir.Constant(ir.VectorType(_LONG, lanes), None)
    return builder.shuffle_vector(first, ir.Constant(vector, ir.Undefined), zeros)


def variant(kind: int, columns: int, rows: int) -> int:
    """Return the number of a variant, as the compiled functions are told it."""
    return kind * 64 + columns * 8 + rows


def _switched(
    builder: ir.IRBuilder,
    number: ir.Value,
    arguments: list[ir.Value],
    make: Callable[[ir.Module, int, int, int], ir.Function],
    columns: tuple[int, ...],
    kinds: Iterable[int],
) -> None:
    """Call the variant of this number."""
    after, none = builder.append_basic_block("done"), builder.append_basic_block("none")
    switch = builder.switch(number, none)
    for kind in kinds:
        for many in columns:
            for rows in range(1, ROWS + 1):
                block = builder.append_basic_block("variant")
                switch.add_case(_INT(variant(kind, many, rows)), block)
                builder.position_at_end(block)
                builder.call(make(builder.module, kind, many, rows), arguments)
                builder.branch(after)
    builder.position_at_end(none)
    builder.branch(after)
    builder.position_at_end(after)


_I = types.int64


def _products(_context, number, matrix, matrix_step, vector, vector_step, length, out, out_step):  # type: ignore[no-untyped-def] # pragma: no cover
    """Compute ``CHANNELS`` or one channel of a product for some rows; ``number`` says the variant."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        _switched(builder, values[0], list(values[1:]), _block, (1, CHANNELS), TERMS)
        return context.get_dummy_value()

    return types.void(*[_I] * 8), generate


def _mixed(_context, number, vectors, vector_step, shares, share_step, length, out, out_step, channels):  # type: ignore[no-untyped-def] # pragma: no cover
    """Compute weighted sums of vectors for some rows; ``number`` says the variant."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        _switched(builder, values[0], list(values[1:]), _mixture, (1, PIECES), WEIGHTS)
        return context.get_dummy_value()

    return types.void(*[_I] * 9), generate


def _number_at(_context, address):  # type: ignore[no-untyped-def] # pragma: no cover
    """Return the float32 number at an address."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.load(builder.inttoptr(values[0], _FLOAT.as_pointer()))

    return types.float32(_I), generate


def _bfloat16_at(_context, address):  # type: ignore[no-untyped-def] # pragma: no cover
    """Return the bfloat16 number at an address as float32."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        word = builder.load(builder.inttoptr(values[0], _WORD.as_pointer()))
        return builder.bitcast(builder.shl(builder.zext(word, _LONG), _LONG(16)), _FLOAT)

    return types.float32(_I), generate


def _put_number(_context, address, value):  # type: ignore[no-untyped-def] # pragma: no cover
    """Write a float32 number to an address."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        builder.store(values[1], builder.inttoptr(values[0], _FLOAT.as_pointer()))
        return context.get_dummy_value()

    return types.void(_I, types.float32), generate


def _put_bfloat16(_context, address, value):  # type: ignore[no-untyped-def] # pragma: no cover
    """Write a number to an address as bfloat16, rounded to the nearest, ties to even."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        word = bfloat16(builder, values[1])
        builder.store(word, builder.inttoptr(values[0], _WORD.as_pointer()))
        return context.get_dummy_value()

    return types.void(_I, types.float32), generate


def _as_float(_context, bits):  # type: ignore[no-untyped-def] # pragma: no cover
    """Return the float32 number of these 32 bits."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.bitcast(values[0], _FLOAT)

    return types.float32(types.int32), generate


products: Any = intrinsic(inspect.unwrap(_products))
mixed: Any = intrinsic(inspect.unwrap(_mixed))
number_at: Any = intrinsic(inspect.unwrap(_number_at))
bfloat16_at: Any = intrinsic(inspect.unwrap(_bfloat16_at))
put_number: Any = intrinsic(inspect.unwrap(_put_number))
put_bfloat16: Any = intrinsic(inspect.unwrap(_put_bfloat16))
as_float: Any = intrinsic(inspect.unwrap(_as_float))
