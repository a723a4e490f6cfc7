"""One channel in blocks times some rows, in one of two forms: the processor that is compiled for says which.

**In float32**: each small number becomes ``scale * number + least`` and is multiplied with a row's. Four sums by turns
are added in pairs, then the sixteen lanes in halves.

**In whole numbers**, on a processor that has AVX2 and no more. It cannot look four bits up in a table of sixteen, and
takes four instructions to make eight of them float32, while two multiply and add sixteen whole numbers of 16 bits. So a
row is prepared once for all matrices that read it: with ``s = max |x| / 2^30`` each of its numbers is
``s (2^16 high + low)``, with an error of at most ``s / 2``, less than float32's own in the largest. Then ``sum_j scale
q_j x_j = s (2^16 scale sum_j q_j high_j + scale sum_j q_j low_j)``, whose inner sums are exact, and what a block adds
to each of its numbers is multiplied with the sum of the row's 32 there. (llama.cpp rounds a row to 8 bits.)
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter
from typing import final

from llvmlite import ir
from numba.core import cgutils

from orrery.kernels.block_kinds import (
    FLOAT,
    INT,
    KINDS,
    LANES,
    LONG,
    LONGS,
    VECTOR,
    WORDS,
    Decoded,
    Floats,
    Words,
    Writer,
    function_of,
)
from orrery.kernels.prefetch import AHEAD, LINE, ask
from orrery.kernels.quantised import lanes_added
from orrery.kernels.step.functions import Lanes
from orrery.kernels.step.vectors import FLOAT32, WEIGHTS, load, loop, spread, total

SUMS, ROWS = 4, 4
"""Sums of a row in float32, and rows that are computed together."""
TOGETHER = 32
"""Numbers of a row whose sum is kept: no kind adds one number to fewer."""
HIGH, LOW = 0, 2 * TOGETHER
"""Where the upper and the lower halves of so many numbers stand, in bytes."""
LARGEST = 2.0**30
"""What the largest number of a row becomes: with a sign it fits into 32 bits, its upper half into 16."""
LEAST = 1e-27
"""What the largest number of a row is taken for where it is smaller, so that no quotient is infinite."""
_EIGHT, _EIGHT_LONGS = ir.VectorType(FLOAT, 8), ir.VectorType(LONG, 8)


def _form(features: str) -> "type[_Form]":
    """Return the form of products on a processor with these features."""
    has = features.split(",")
    return _WholeNumbers if "+avx2" in has and "+avx512f" not in has else _SinglePrecision


def product_function(module: ir.Module, kind: str, rows: int, features: str) -> ir.Function:
    """Return the function that multiplies some channels with some rows.

    Its arguments are the address of the first channel, the bytes to the next and how many, the blocks of one, the
    address of the first prepared row and the bytes to the next, and where the results go.
    """
    name = f"orrery_blocks_{kind}_{rows}"
    if name in module.globals:
        return module.globals[name]
    function, builder = function_of(module, name, 8)
    weight, step, channels, blocks, x, x_step, out, out_step = function.args
    size, stored, decode = KINDS[kind]
    begins = [builder.add(x, builder.mul(x_step, INT(row))) for row in range(rows)]
    length = builder.mul(blocks, INT(size))

    def channel(held: list[ir.Value], _: ir.Value) -> list[ir.Value]:
        own, to = held
        products = _form(features)(builder, features, begins, length)

        def block(held: list[ir.Value], _: ir.Value) -> list[ir.Value]:
            for line in range(0, stored, LINE):
                ask(builder, held[0], AHEAD + line)
            products.add(decode(products.w, held[0]), held[1:])
            return [builder.add(at, INT(bytes_)) for at, bytes_ in zip(held, steps, strict=True)]

        steps = [stored, *(each * size // TOGETHER for each in products.steps)]
        loop(builder, blocks, [own, *products.places], block, 1)
        for row in range(rows):
            _put(builder, products.result(row), to, builder.mul(out_step, INT(row)))
        return [builder.add(own, step), builder.add(to, INT(4))]

    loop(builder, channels, [weight, out], channel, 1)
    builder.ret_void()
    return function


def preparation(module: ir.Module, features: str) -> ir.Function:
    """Return the function that prepares a row: where it is, where the prepared one goes, and how many numbers."""
    name = "orrery_blocks_prepared"
    if name in module.globals:
        return module.globals[name]
    function, builder = function_of(module, name, 3)
    _form(features).prepare(builder, *function.args)
    builder.ret_void()
    return function


class _Form(ABC):
    """The instructions of one channel's products with some rows: sums that begin with zeros, and what a block adds.

    Args:
        builder: where instructions are written.
        features: of the processor.
        rows: addresses of the prepared rows.
        length: numbers of a row.

    Attributes:
        places: addresses that are read along a row, where they begin.
        steps: the bytes that each moves with 32 numbers of the row.
    """

    places: Sequence[ir.Value]
    steps: Sequence[int]

    def __init__(self, builder: ir.IRBuilder, features: str, rows: Sequence[ir.Value], length: ir.Value) -> None:
        self.b, self.rows, self.length = builder, rows, length
        self.w = self.writer(builder, features)

    @property
    @abstractmethod
    def writer(self) -> type[Writer]:
        """As what small numbers come."""

    @abstractmethod
    def add(self, block: Decoded, places: Sequence[ir.Value]) -> None:
        """Add the products of a block with what is read from the places that are reached."""

    @abstractmethod
    def result(self, row: int) -> ir.Value:
        """Return the product with one row."""

    @staticmethod
    @abstractmethod
    def prepare(builder: ir.IRBuilder, x: ir.Value, out: ir.Value, count: ir.Value) -> None:
        """Write what `add` reads of a row of ``count`` numbers."""

    def sum(self, kind: ir.Type) -> ir.Value:
        """Return a place on the stack with zeros, of which the compiler makes a register."""
        return cgutils.alloca_once(self.b, kind, zfill=True)

    def added(self, place: ir.Value, a: ir.Value, b: ir.Value) -> None:
        """Add ``a b`` to a sum."""
        kind = a.type
        self.b.store(self.w.called(f"llvm.fma.v{kind.count}f32", kind, a, b, self.b.load(place)), place)


@final
class _SinglePrecision(_Form):
    writer = Floats

    def __init__(self, builder: ir.IRBuilder, features: str, rows: Sequence[ir.Value], length: ir.Value) -> None:
        super().__init__(builder, features, rows, length)
        self.places, self.steps = rows, [4 * TOGETHER] * len(rows)
        self.sums = [[self.sum(VECTOR) for _ in range(SUMS)] for _ in rows]

    def add(self, block: Decoded, places: Sequence[ir.Value]) -> None:
        for turn, (place, part, number) in enumerate(block.numbers):
            weight = weights(self.w, block, part, number)
            for at, own in zip(places, self.sums, strict=True):
                self.added(own[turn % SUMS], weight, self.w.loaded(VECTOR, at, 4 * place))

    def result(self, row: int) -> ir.Value:
        first, second, third, fourth = (self.b.load(place) for place in self.sums[row])
        return lanes_added(self.b, self.b.fadd(self.b.fadd(first, second), self.b.fadd(third, fourth)))

    @staticmethod
    def prepare(builder: ir.IRBuilder, x: ir.Value, out: ir.Value, count: ir.Value) -> None:
        def copied(held: list[ir.Value], place: ir.Value) -> list[ir.Value]:
            offset = builder.mul(place, INT(4))
            _put(builder, load(builder, WEIGHTS[FLOAT32], x, offset, None), out, offset)
            return []

        loop(builder, count, [], copied, LANES)


@final
class _WholeNumbers(_Form):
    writer = Words

    def __init__(self, builder: ir.IRBuilder, features: str, rows: Sequence[ir.Value], length: ir.Value) -> None:
        super().__init__(builder, features, rows, length)
        self.sums = [[self.sum(_EIGHT) for _ in (HIGH, LOW)] for _ in rows]
        self.least_of = {many: [self.sum(ir.VectorType(FLOAT, many)) for _ in rows] for many in (4, 8)}
        self.least: list[ir.Value] = []
        self.sums_of_row = [self.b.add(row, self.b.mul(length, INT(4))) for row in rows]
        self.places = [*rows, *self.sums_of_row]
        self.steps = [4 * TOGETHER] * len(rows) + [4] * len(rows)

    def add(self, block: Decoded, places: Sequence[ir.Value]) -> None:
        rows, sums_of_row = places[: len(self.rows)], places[len(self.rows) :]
        for part, numbers in groupby(block.numbers, itemgetter(1)):
            sixteens = [(place, number) for place, _, number in numbers]
            scale = self.w.lane(block.scales, part)
            for at, sums in zip(rows, self.sums, strict=True):
                for half, own in zip((HIGH, LOW), sums, strict=True):
                    products = [self._multiplied(number, at, place, half) for place, number in sixteens]
                    whole = products[0] if len(products) == 1 else self.b.add(*products)
                    self.added(own, scale, self.b.sitofp(whole, _EIGHT))
        if block.least is not None:
            kind, self.least_from = block.least.type, block.least_from
            self.least = self.least_of[kind.count]
            for at, own in zip(sums_of_row, self.least, strict=True):
                self.added(own, block.least, self.w.loaded(kind, at, -4 * block.least_from))

    def _multiplied(self, number: ir.Value, at: ir.Value, place: int, half: int) -> ir.Value:
        """Return eight sums of two products."""
        before, rest = divmod(place, TOGETHER)
        x = self.w.loaded(WORDS, at, 4 * TOGETHER * before + half + 2 * rest)
        return self.w.called("llvm.x86.avx2.pmadd.wd", _EIGHT_LONGS, number, x)

    def result(self, row: int) -> ir.Value:
        high, low = (self.b.load(place) for place in self.sums[row])
        both = self.w.called("llvm.fma.v8f32", _EIGHT, high, ir.Constant(_EIGHT, [2.0**16] * 8), low)
        scale_at = _behind_sums(self.b, self.sums_of_row[row], self.length)
        scale = self.b.load(self.b.inttoptr(scale_at, FLOAT.as_pointer()), align=4)
        result = self.b.fmul(lanes_added(self.b, both), scale)
        if self.least:
            least = self.b.load(self.least[row])
            alone = least.type.count != 8  # one number of four, or eight
            more = self.b.extract_element(least, LONG(self.least_from)) if alone else lanes_added(self.b, least)
            result = self.b.fadd(result, more)
        return result

    @staticmethod
    def prepare(builder: ir.IRBuilder, x: ir.Value, out: ir.Value, count: ir.Value) -> None:
        b, plain = builder, WEIGHTS[FLOAT32]

        def read(place: ir.Value, more: int = 0) -> Lanes:
            return Lanes(b, load(b, plain, x, b.mul(b.add(place, INT(more)), INT(4)), None))

        def larger(held: list[ir.Value], place: ir.Value) -> list[ir.Value]:
            return [Lanes(b, held[0]).call("maximum", read(place).call("fabs")).value]

        (peaks,) = loop(b, count, [ir.Constant(VECTOR, [LEAST] * LANES)], larger, LANES)
        shape = ir.FunctionType(FLOAT, [VECTOR])
        peak = b.call(cgutils.get_or_insert_function(b.module, shape, "llvm.vector.reduce.fmaximum.v16f32"), [peaks])
        factor = Lanes(b, spread(b, b.fdiv(ir.Constant(FLOAT, LARGEST), peak)))
        sums = b.add(out, b.mul(count, INT(4)))
        _put(b, b.fmul(peak, ir.Constant(FLOAT, 1 / LARGEST)), _behind_sums(b, sums, count), INT(0))

        def parted(held: list[ir.Value], place: ir.Value) -> list[ir.Value]:
            numbers = [read(place, more) for more in range(0, TOGETHER, LANES)]
            sum_ = total(b, b.fadd(*(each.value for each in numbers)))
            _put(b, sum_, sums, b.udiv(b.mul(place, INT(4)), INT(TOGETHER)))
            begin = b.mul(place, INT(4))
            for number, more in zip(numbers, range(0, TOGETHER, LANES), strict=True):
                whole = b.fptosi((number * factor).call("rint").value, LONGS)
                high = b.ashr(b.add(whole, ir.Constant(LONGS, [1 << 15] * LANES)), ir.Constant(LONGS, [16] * LANES))
                low = b.sub(whole, b.shl(high, ir.Constant(LONGS, [16] * LANES)))
                for half, part in ((HIGH, high), (LOW, low)):
                    _put(b, b.trunc(part, WORDS), out, b.add(begin, INT(half + 2 * more)))
            return []

        loop(b, count, [], parted, TOGETHER)


def weights(w: Writer, block: Decoded, part: int, number: ir.Value) -> ir.Value:
    """Return sixteen numbers of a matrix in float32 from the small ones: those that it stands for."""
    scale = w.lane(block.scales, part)
    if block.least is None:
        return w.builder.fmul(scale, number)
    return w.called("llvm.fma.v16f32", VECTOR, scale, number, w.lane(block.least, block.least_from + part))


def _put(builder: ir.IRBuilder, value: ir.Value, base: ir.Value, offset: ir.Value) -> None:
    builder.store(value, builder.inttoptr(builder.add(base, offset), value.type.as_pointer()), align=2)


def _behind_sums(builder: ir.IRBuilder, sums: ir.Value, length: ir.Value) -> ir.Value:
    """Return the address of a row's scale, which stands behind its sums as ``prepared_width`` counts them."""
    many = builder.udiv(length, INT(TOGETHER))
    return builder.add(sums, builder.mul(builder.and_(builder.add(many, INT(LANES - 1)), INT(-LANES)), INT(4)))
