"""Ask the memory for numbers before they are needed.

A processor guesses what a program will read within one page of memory, 4,096 bytes, and no farther: a matrix that is
read once, from its beginning to its end, waits at every page, and so does a new page for its address. Asked for a page
ahead, products with one row are half as fast again (Q4_1, 66 MB: 10.3 against 17.1 billion numbers a second).
"""

from typing import Any

from llvmlite import ir
from numba.core import cgutils

AHEAD = 4096
"""Bytes between what is multiplied and what is asked for."""
LINE = 64
"""Bytes that the memory gives at once."""

_BYTE, _LONG = ir.IntType(8).as_pointer(), ir.IntType(32)


def ask(builder: Any, address: ir.Value, ahead: int = 0) -> None:
    """Ask for the line that holds an address, or one some bytes behind it; it need not exist."""
    shape = ir.FunctionType(ir.VoidType(), [_BYTE, _LONG, _LONG, _LONG])
    function = cgutils.get_or_insert_function(builder.module, shape, "llvm.prefetch.p0")
    place = builder.inttoptr(builder.add(address, ir.Constant(address.type, ahead)), _BYTE)
    # 0: to be read; 3: keep in every cache; 1: data, not instructions.
    builder.call(function, [place, _LONG(0), _LONG(3), _LONG(1)])
