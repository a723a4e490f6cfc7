"""A table to read: what it shows, where its numbers are from, and where they differ from what somebody printed."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal, localcontext
from fractions import Fraction

DIGITS = 50
"""The digits with which numbers are divided before they are rounded to those that are printed."""


@dataclass(frozen=True)
class PaperTable:
    """Rows of texts with their source.

    Attributes:
        name: by which a link finds it.
        title: what it shows.
        source: the paper and its table, or the deck and its slide, that the printed numbers are from.
        columns: the heads of the columns.
        rows: the cells.
        notes: what the numbers say; those that begin with "slide differs" or "paper differs" give both numbers.
        figure: the same as a picture, as SVG; nothing where there is none.
        caption: what the picture draws.
    """

    name: str
    title: str
    source: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = ()
    figure: str = ""
    caption: str = ""


def rounded(value: int | float | Fraction, digits: int = 3) -> Decimal:
    """Return a positive number with so many significant digits, halves rounded up as printed tables do."""
    exact = Fraction(value)
    with localcontext() as context:
        context.prec = DIGITS
        quotient = Decimal(exact.numerator) / Decimal(exact.denominator)
        return quotient.quantize(Decimal(1).scaleb(quotient.adjusted() - digits + 1), ROUND_HALF_UP)


def plain(value: int | float | Fraction, digits: int = 3) -> str:
    """Return a number of so many significant digits without an exponent: ``2.60``, ``3,640``."""
    return f"{rounded(value, digits):,f}"


def scientific(value: int | float | Fraction, digits: int = 3) -> str:
    """Return a number of so many significant digits with its power of ten: ``3.14e23``."""
    decimal = rounded(value, digits)
    return f"{decimal.scaleb(-decimal.adjusted()):.{digits - 1}f}e{decimal.adjusted()}"


def large(value: int | float, digits: int = 3) -> str:
    """Return a count as it is said: ``40.2 billion``, ``1.56 trillion``."""
    for size, name in ((1e12, "trillion"), (1e9, "billion"), (1e6, "million")):
        if value >= size:
            return f"{plain(value / size, digits)} {name}"
    return plain(value, digits)


def verdict(agrees: bool, who: str, printed: str, computed_text: str) -> str:
    """Return whether a printed number is what follows from the others; where it is not, both numbers."""
    return "agrees" if agrees else f"{who} differs: printed {printed}, computed {computed_text}"
