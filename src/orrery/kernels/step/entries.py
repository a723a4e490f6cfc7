"""The functions of vectors as compiled functions of their own, called by address.

Compiled into each of their callers they would be compiled five times over, which takes most of half a minute.
"""

import inspect
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from orrery.kernels import blocks, quantised
from orrery.kernels.step import functions, vectors
from orrery.kernels.step.compiling import compiled_entry

PRODUCTS, MIXED, ELEMENTWISE, NORM, SOFTMAX, QUANTISED, BLOCKS, PREPARED, DECODED = range(9)
"""The places of their addresses."""

_WHOLE, _REAL = types.int64, types.float32
_SIGNATURES = (
    (_WHOLE,) * 8,
    (_WHOLE,) * 9,
    (_WHOLE,) * 5 + (_REAL,),
    (_WHOLE,) * 6 + (_REAL,),
    (_WHOLE,) * 2 + (_REAL,),
    (_WHOLE,) * 12,
    (_WHOLE,) * 11,
    (_WHOLE,) * 3,
    (_WHOLE,) * 4,
)


def compiled_entries() -> Any:
    """Return the addresses of the compiled functions, whole numbers in the order of their places."""
    entries: tuple[Any, ...] = (
        _products, _mixed, _elementwise, _norm, _softmax, _quantised, _blocks, _prepared, _decoded,
    )  # fmt: skip
    made = [compiled_entry(types.void(*kinds), entry) for kinds, entry in zip(_SIGNATURES, entries, strict=True)]
    _KEPT.extend(made)
    return np.array([one.address for one in made], dtype=np.int64)


_KEPT: list[Any] = []


def _products(number, matrix, matrix_step, vector, vector_step, length, out, out_step):  # type: ignore[no-untyped-def] # pragma: no cover
    vectors.products(number, matrix, matrix_step, vector, vector_step, length, out, out_step)


def _mixed(number, values, value_step, shares, share_step, length, out, out_step, channels):  # type: ignore[no-untyped-def] # pragma: no cover
    vectors.mixed(number, values, value_step, shares, share_step, length, out, out_step, channels)


def _elementwise(number, x, y, out, count, p):  # type: ignore[no-untyped-def] # pragma: no cover
    functions.elementwise(number, x, y, out, count, p)


def _norm(centred, x, gain, bias, out, count, epsilon):  # type: ignore[no-untyped-def] # pragma: no cover
    functions.norm(centred, x, gain, bias, out, count, epsilon)


def _softmax(scores, count, sink):  # type: ignore[no-untyped-def] # pragma: no cover
    functions.softmax(scores, count, sink)


def _quantised(bits, weight, scale, groups, span, x, x_step, out, out_step, rows, first, last):  # type: ignore[no-untyped-def] # pragma: no cover
    quantised.channels(bits, weight, scale, groups, span, x, x_step, out, out_step, rows, first, last)


def _blocks(kind, weight, step, many, x, x_step, out, out_step, rows, first, last):  # type: ignore[no-untyped-def] # pragma: no cover
    blocks.channels(kind, weight, step, many, x, x_step, out, out_step, rows, first, last)


def _prepared(x, out, count):  # type: ignore[no-untyped-def] # pragma: no cover
    blocks.prepared(x, out, count)


def _decoded(kind, weight, many, out):  # type: ignore[no-untyped-def] # pragma: no cover
    blocks.decoded(kind, weight, many, out)


def _calling(place: int) -> tuple[Any, Any]:
    """Return the signature and the code of calling a function by its address, which comes first."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        kinds = [context.get_value_type(kind) for kind in _SIGNATURES[place]]
        shape = ir.FunctionType(ir.VoidType(), kinds)
        builder.call(builder.inttoptr(values[0], shape.as_pointer()), list(values[1:]))
        return context.get_dummy_value()

    return types.void(_WHOLE, *_SIGNATURES[place]), generate


def _call_products(_context, entry, number, matrix, matrix_step, vector, vector_step, length, out, out_step):  # type: ignore[no-untyped-def] # pragma: no cover
    return _calling(PRODUCTS)


def _call_mixed(_context, entry, number, values, value_step, shares, share_step, length, out, out_step, channels):  # type: ignore[no-untyped-def] # pragma: no cover
    return _calling(MIXED)


def _call_elementwise(_context, entry, number, x, y, out, count, p):  # type: ignore[no-untyped-def] # pragma: no cover
    return _calling(ELEMENTWISE)


def _call_norm(_context, entry, centred, x, gain, bias, out, count, epsilon):  # type: ignore[no-untyped-def] # pragma: no cover
    return _calling(NORM)


def _call_softmax(_context, entry, scores, count, sink):  # type: ignore[no-untyped-def] # pragma: no cover
    return _calling(SOFTMAX)


def _call_quantised(_context, entry, bits, weight, scale, groups, span, x, x_step, out, out_step, rows, first, last):  # type: ignore[no-untyped-def] # pragma: no cover
    return _calling(QUANTISED)


def _call_blocks(_context, entry, kind, weight, step, many, x, x_step, out, out_step, rows, first, last):  # type: ignore[no-untyped-def] # pragma: no cover
    return _calling(BLOCKS)


def _call_prepared(_context, entry, x, out, count):  # type: ignore[no-untyped-def] # pragma: no cover
    return _calling(PREPARED)


def _call_decoded(_context, entry, kind, weight, many, out):  # type: ignore[no-untyped-def] # pragma: no cover
    return _calling(DECODED)


products: Any = intrinsic(inspect.unwrap(_call_products))
mixed: Any = intrinsic(inspect.unwrap(_call_mixed))
elementwise: Any = intrinsic(inspect.unwrap(_call_elementwise))
norm: Any = intrinsic(inspect.unwrap(_call_norm))
softmax: Any = intrinsic(inspect.unwrap(_call_softmax))
whole_numbers: Any = intrinsic(inspect.unwrap(_call_quantised))
prepared: Any = intrinsic(inspect.unwrap(_call_prepared))
in_blocks: Any = intrinsic(inspect.unwrap(_call_blocks))
decoded: Any = intrinsic(inspect.unwrap(_call_decoded))
