"""How the blocks of a GGUF file are decoded, sixteen numbers at a time: small numbers, their scales, and what is added.

Every kind stores ``scale * number + least`` for small numbers, most of which are whole. A writer says as what the small
ones come: as float32, or as whole numbers of 16 bits.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import NamedTuple, final

from llvmlite import binding, ir
from numba.core import cgutils

from orrery.kernels.step.codes import BLOCKS, FLOAT4

binding.initialize_native_asmparser()  # an instruction is given by its name

LANES = 16

INT, LONG, WORD, BYTE, FLOAT = (*(ir.IntType(bits) for bits in (64, 32, 16, 8)), ir.FloatType())
LONGS, WORDS, VECTOR = (ir.VectorType(kind, LANES) for kind in (LONG, WORD, FLOAT))
_BYTES, _HALVES = ir.VectorType(BYTE, LANES), ir.VectorType(ir.HalfType(), 8)
_EIGHT_BYTES, _EIGHT_LONGS, _EIGHT = (ir.VectorType(kind, 8) for kind in (BYTE, LONG, FLOAT))
_FOUR_LONGS, _FOUR = ir.VectorType(LONG, 4), ir.VectorType(FLOAT, 4)


Numbers = Iterator[tuple[int, int, ir.Value]]
"""Sixteen after sixteen, with their place in the block and that of their scale among the scales."""


def function_of(module: ir.Module, name: str, arguments: int) -> tuple[ir.Function, ir.IRBuilder]:
    """Return a new function of whole numbers that gives nothing, and where its instructions are written.

    It stays a function of its own: among the others of a caller its constants would find no register, and each turn of
    a loop would load them (Q5_0 1.25 times as long on AVX2).
    """
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [INT] * arguments), name)
    function.linkage = "internal"
    function.attributes.add("noinline")
    return function, ir.IRBuilder(function.append_basic_block("entry"))


class Decoded(NamedTuple):
    """A block: its numbers, and vectors of their scales and of what is added, where that is, from some lane on."""

    numbers: Numbers
    scales: ir.Value
    least: ir.Value | None = None
    least_from: int = 0


class Writer(ABC):
    """Instructions over sixteen stored numbers; ``whole`` is the type of whole numbers, ``lanes`` those of a scale."""

    whole: ir.VectorType
    lanes: int

    def __init__(self, builder: ir.IRBuilder, features: str) -> None:
        self.builder, self.features = builder, features.split(",")

    def called(self, name: str, result: ir.Type, *values: ir.Value) -> ir.Value:
        """Return what a function of the compiler's makes of values."""
        shape = ir.FunctionType(result, [value.type for value in values])
        return self.builder.call(cgutils.get_or_insert_function(self.builder.module, shape, name), values)

    def loaded(self, kind: ir.Type, at: ir.Value, offset: int) -> ir.Value:
        """Return what stands ``offset`` bytes behind an address, which need not be aligned."""
        place = self.builder.inttoptr(self.builder.add(at, INT(offset)), kind.as_pointer())
        return self.builder.load(place, align=1)

    def halves(self, at: ir.Value, offset: int, many: int = 1) -> ir.Value:
        """Return one or two float16 numbers as float32 and, in the other lanes of four, zeros.

        Zeros are asked for: for a number alone the compiler takes a register whose rest may be anything, which can be
        that of a sum, and then each block waits for the one before (Q4_1 1.4 times as long on AVX2).
        """
        b, bits = self.builder, self.loaded(ir.IntType(16 * many), at, offset)
        bits = b.zext(bits, LONG) if many == 1 else bits
        alone = b.insert_element(ir.Constant(_FOUR_LONGS, None), bits, LONG(0))
        eight = b.bitcast(alone, _HALVES)
        few = b.shuffle_vector(eight, ir.Constant(_HALVES, ir.Undefined), ir.Constant(_FOUR_LONGS, [0, 1, 2, 3]))
        return b.fpext(few, _FOUR)

    def lane(self, vector: ir.Value, number: int, lanes: int | None = None) -> ir.Value:
        """Return one number of a vector in every lane."""
        places = ir.Constant(ir.VectorType(LONG, lanes or self.lanes), [number] * (lanes or self.lanes))
        return self.builder.shuffle_vector(vector, ir.Constant(vector.type, ir.Undefined), places)

    def many(self, number: int) -> ir.Value:
        """Return sixteen times a whole number."""
        return ir.Constant(self.whole, [number] * LANES)

    def bytes(self, at: ir.Value, offset: int) -> ir.Value:
        """Return sixteen bytes as whole numbers."""
        return self.builder.zext(self.loaded(_BYTES, at, offset), self.whole)

    def moved(self, whole: ir.Value, start: int, end: int) -> ir.Value:
        """Return whole numbers with their bits moved so that the one at ``start`` stands at ``end``."""
        up, down = max(end - start, 0), max(start - end, 0)
        return self.builder.shl(whole, self.many(up)) if up else self.builder.lshr(whole, self.many(down))

    def signed(self, at: ir.Value, offset: int) -> ir.Value:
        """Return sixteen bytes with their signs."""
        return self.number(self.builder.sext(self.loaded(_BYTES, at, offset), self.whole))

    def four(self, bytes_: ir.Value, high: int) -> ir.Value:
        """Return the low or the high four bits of bytes as whole numbers."""
        return self.moved(bytes_, 4, 0) if high else self.builder.and_(bytes_, self.many(15))

    def fours(self, bytes_: ir.Value, high: int, less: int = 0) -> ir.Value:
        """Return the low or the high four bits of bytes, less a number."""
        four = self.four(bytes_, high)
        return self.number(self.builder.sub(four, self.many(less)) if less else four)

    def float4(self, bytes_: ir.Value, high: int) -> ir.Value:
        """Return twice the number of MXFP4 that the low or high four bits stand for: a whole number."""
        whole = self.four(bytes_, high)
        b, many = self.builder, self.many

        def beyond(bound: int) -> ir.Value:
            rest = b.sub(size, many(bound))
            return b.select(b.icmp_signed(">", rest, many(0)), rest, many(0))

        size = b.and_(whole, many(7))
        number = b.add(b.add(size, beyond(4)), b.shl(beyond(6), many(1)))  # 0, 1, 2, 3, 4, then 6 and 8, then 12
        signed = b.select(b.icmp_signed("!=", b.and_(whole, many(8)), many(0)), b.sub(many(0), number), number)
        return self.number(signed)

    @abstractmethod
    def number(self, whole: ir.Value) -> ir.Value:
        """Return whole numbers as the numbers of a block come."""

    @abstractmethod
    def more_where(self, mask: ir.Value, number: ir.Value) -> ir.Value:
        """Return numbers with sixteen added where a mask says so."""

    @abstractmethod
    def with_fifth(self, number: ir.Value, fifth: ir.Value, bit: int) -> ir.Value:
        """Return numbers of four bits with sixteen added where a bit of whole numbers is set."""


@final
class Floats(Writer):
    """Numbers in float32."""

    whole, lanes = LONGS, LANES

    def number(self, whole: ir.Value) -> ir.Value:
        """Return them in float32."""
        return self.builder.sitofp(whole, VECTOR)

    def with_fifth(self, number: ir.Value, fifth: ir.Value, bit: int) -> ir.Value:
        """Add sixteen by a mask."""
        b = self.builder
        mask = b.icmp_signed("!=", b.and_(fifth, self.many(1 << bit)), self.many(0))
        return self.more_where(mask, number)

    def more_where(self, mask: ir.Value, number: ir.Value) -> ir.Value:
        """Add sixteen by a mask."""
        return self.builder.select(mask, self.builder.fadd(number, ir.Constant(VECTOR, [16.0] * LANES)), number)

    def fours(self, bytes_: ir.Value, high: int, less: int = 0) -> ir.Value:
        """Look them up where the processor can."""
        if "+avx512f" not in self.features:
            return super().fours(bytes_, high, less)
        return self._looked_up([float(number - less) for number in range(LANES)], bytes_, high)

    def float4(self, bytes_: ir.Value, high: int) -> ir.Value:
        """Look them up where the processor can."""
        if "+avx512f" not in self.features:
            return super().float4(bytes_, high)
        return self._looked_up([2 * sign * size for sign in (1, -1) for size in FLOAT4], bytes_, high)

    def _looked_up(self, table: list[float], bytes_: ir.Value, high: int) -> ir.Value:
        """Return numbers of a table of sixteen, which sees the low four bits alone."""
        places = self.moved(bytes_, 4, 0) if high else bytes_
        return self.called("llvm.x86.avx512.permvar.sf.512", VECTOR, ir.Constant(VECTOR, table), places)


@final
class Words(Writer):
    """Whole numbers of 16 bits; a scale is a vector of eight."""

    whole, lanes = WORDS, 8

    def bytes(self, at: ir.Value, offset: int) -> ir.Value:
        """Return sixteen bytes, by an instruction's name: the compiler would take bits apart first, which is longer."""
        kind = ir.FunctionType(WORDS, [INT])
        return self.builder.asm(kind, "vpmovzxbw ($1), $0", "=x,r", [self.builder.add(at, INT(offset))], False)

    def number(self, whole: ir.Value) -> ir.Value:
        """Return them as they are."""
        return whole

    def with_fifth(self, number: ir.Value, fifth: ir.Value, bit: int) -> ir.Value:
        """Set the fifth bit."""
        return self.builder.or_(number, self.builder.and_(self.moved(fifth, bit, 4), self.many(16)))

    def more_where(self, mask: ir.Value, number: ir.Value) -> ir.Value:
        """Add sixteen by a mask."""
        b = self.builder
        return b.add(number, b.and_(b.sext(mask, self.whole), self.many(16)))


def _q8_0(w: Writer, at: ir.Value) -> Decoded:
    return Decoded(((k, 0, w.signed(at, 2 + k)) for k in (0, 16)), w.halves(at, 0))


def _fours(w: Writer, at: ir.Value, offset: int, read: Callable[[ir.Value, int], ir.Value]) -> Numbers:
    """Return 32 numbers of sixteen bytes: of the low four bits of each, then of the high ones."""
    packed = w.bytes(at, offset)
    for k in (0, 1):
        yield 16 * k, 0, read(packed, k)


def _q4_0(w: Writer, at: ir.Value) -> Decoded:
    return Decoded(_fours(w, at, 2, lambda packed, high: w.fours(packed, high, 8)), w.halves(at, 0))


def _q4_1(w: Writer, at: ir.Value) -> Decoded:
    both = w.halves(at, 0, 2)
    return Decoded(_fours(w, at, 4, w.fours), both, both, 1)


def _mxfp4(w: Writer, at: ir.Value) -> Decoded:
    """Scale by ``2^(e - 128)``, e the first byte; the two smallest scales are below float32's normal numbers."""
    b, exponent = w.builder, w.builder.zext(w.loaded(BYTE, at, 0), LONG)
    usual = b.shl(b.sub(exponent, LONG(1)), LONG(23))
    bits = b.select(b.icmp_unsigned(">", exponent, LONG(1)), usual, b.shl(LONG(1 << 21), exponent))
    scale = b.bitcast(b.insert_element(ir.Constant(_FOUR_LONGS, None), bits, LONG(0)), _FOUR)
    return Decoded(_fours(w, at, 1, w.float4), scale)


def _fives(w: Writer, at: ir.Value, bits: int, rest: int, less: int) -> Numbers:
    """Return the 32 numbers whose fifth bits stand at ``bits`` and whose others stand at ``rest``."""
    packed = w.bytes(at, rest)
    for k in (0, 1):
        mask = w.loaded(ir.VectorType(ir.IntType(1), LANES), at, bits + 2 * k)
        yield 16 * k, 0, w.more_where(mask, w.fours(packed, k, less))


def _q5_0(w: Writer, at: ir.Value) -> Decoded:
    return Decoded(_fives(w, at, 2, 6, 16), w.halves(at, 0))


def _q5_1(w: Writer, at: ir.Value) -> Decoded:
    both = w.halves(at, 0, 2)
    return Decoded(_fives(w, at, 4, 8, 0), both, both, 1)


def _sixes(w: Writer, at: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Return the eight scales and the eight least numbers of a block of Q4_K or Q5_K, the latter negated."""
    b = w.builder
    low, middle, high = (w.loaded(LONG, at, offset) for offset in (4, 8, 12))

    def joined(first: ir.Value, second: ir.Value, factor: ir.Value) -> ir.Value:
        both = b.or_(b.zext(first, INT), b.shl(b.zext(second, INT), INT(32)))
        number = b.uitofp(b.zext(b.bitcast(both, _EIGHT_BYTES), _EIGHT_LONGS), _EIGHT)
        return b.fmul(number, w.lane(factor, 0, 8))

    def upper(shifted: ir.Value, with_two: ir.Value) -> ir.Value:
        return b.or_(b.and_(shifted, LONG(0x0F0F0F0F)), b.and_(b.lshr(with_two, LONG(2)), LONG(0x30303030)))

    six = LONG(0x3F3F3F3F)
    scales = joined(b.and_(low, six), upper(high, low), w.halves(at, 0))
    least = joined(b.and_(middle, six), upper(b.lshr(high, LONG(4)), middle), b.fneg(w.halves(at, 2)))
    return scales, least


def _q4_k(w: Writer, at: ir.Value) -> Decoded:
    def numbers() -> Numbers:
        for j in range(4):
            packed = [w.bytes(at, 16 + 32 * j + k) for k in (0, 16)]
            for part in (2 * j, 2 * j + 1):
                for k in (0, 1):
                    yield 32 * part + 16 * k, part, w.fours(packed[k], part & 1)

    return Decoded(numbers(), *_sixes(w, at))


def _q5_k(w: Writer, at: ir.Value) -> Decoded:
    def numbers() -> Numbers:
        fifth = [w.bytes(at, 16 + k) for k in (0, 16)]
        for j in range(4):
            packed = [w.bytes(at, 48 + 32 * j + k) for k in (0, 16)]
            for part in (2 * j, 2 * j + 1):
                for k in (0, 1):
                    four = w.fours(packed[k], part & 1)
                    yield 32 * part + 16 * k, part, w.with_fifth(four, fifth[k], part)

    return Decoded(numbers(), *_sixes(w, at))


def _q6_k(w: Writer, at: ir.Value) -> Decoded:
    b = w.builder

    def numbers() -> Numbers:
        for half in (0, 1):
            upper = [w.bytes(at, 128 + 32 * half + k) for k in (0, 16)]
            lower = [w.bytes(at, 64 * half + k) for k in (0, 16, 32, 48)]
            for part in range(4):
                for k in (0, 1):
                    four = w.four(lower[2 * (part & 1) + k], part >> 1)
                    two = b.and_(w.moved(upper[k], 2 * part, 4), w.many(3 << 4))
                    whole = b.sub(b.or_(four, two), w.many(32))
                    yield 128 * half + 32 * part + 16 * k, 8 * half + 2 * part + k, w.number(whole)

    eights = b.sitofp(b.sext(w.loaded(_BYTES, at, 192), LONGS), VECTOR)
    return Decoded(numbers(), b.fmul(w.lane(w.halves(at, 208), 0, LANES), eights))


KINDS: dict[str, tuple[int, int, Callable[[Writer, ir.Value], Decoded]]] = {
    "Q4_0": (32, 18, _q4_0), "Q4_1": (32, 20, _q4_1), "Q5_0": (32, 22, _q5_0), "Q5_1": (32, 24, _q5_1),
    "Q8_0": (32, 34, _q8_0), "Q4_K": (256, 144, _q4_k), "Q5_K": (256, 176, _q5_k), "Q6_K": (256, 210, _q6_k),
    "MXFP4": (32, 17, _mxfp4),
}  # fmt: skip
"""By ggml's name: numbers of a block, its bytes, and what decodes it."""
NUMBERS = {name: number for number, name in enumerate(BLOCKS)}
"""The number by which the compiled functions know a kind."""
