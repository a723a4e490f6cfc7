"""The operations of a whole training by the formulas that papers print, and the petaflop/s-day.

The operations of a model that is at hand are counted by running its step; these formulas need no model.
"""

import math
from fractions import Fraction

from orrery.errors import UsageError

PETAFLOP_DAY = 24 * 3600 * 10**15
"""The operations of 10^15 a second for a day: 8.64e19."""
DENSE, ENCODER_DECODER = 6, 3
"""Operations for each parameter and training token: two forward and four backward (Kaplan et al. 2020, section 2.1).

In T5 a token meets the encoder or the decoder, so half of the parameters (Brown et al. 2020, appendix D).
"""


def training_flops(parameters: int | float, tokens: int | float, each: int = DENSE) -> int | float:
    """Return ``each N D``: the operations of a training without those of attention between tokens.

    Kaplan et al. 2020, section 2.1, with ``each = 6``; Brown et al. 2020, appendix D, with 3 for T5.

    Args:
        parameters: N, of which a token meets every one.
        tokens: D, seen in training; a token seen twice counts twice.
        each: the operations for each parameter and token.

    Raises:
        UsageError: a count that is not a positive finite number.
    """
    positive("parameters", parameters, "175e9")
    positive("training tokens", tokens, "300e9")
    return each * parameters * tokens


def attention_flops(layers: int, heads: int, head_width: int, length: int) -> int:
    """Return ``12 L H Q T``: the operations of attention between tokens for one training token.

    Chowdhery et al. 2022, appendix B: scores and weighted sum, each ``2 H Q T`` forward and twice that backward. They
    count all T keys; a causal query sees half of them on average.

    Args:
        layers: L.
        heads: H, of queries.
        head_width: Q, channels of a head.
        length: T, tokens of a row.

    Raises:
        UsageError: a size that is not a positive finite number.
    """
    for name, size in (("layers", layers), ("heads", heads), ("channels of a head", head_width), ("tokens", length)):
        positive(name, size, "a whole number of at least 1")
    return 12 * layers * heads * head_width * length


def petaflop_days(flops: int | float) -> Fraction:
    """Return operations in petaflop/s-days, exactly.

    Raises:
        UsageError: the operations are not a positive finite number.
    """
    positive("operations", flops, "3.14e23")
    return Fraction(flops) / PETAFLOP_DAY


def positive(name: str, value: int | float, example: str) -> None:
    """Refuse what is not a positive finite number.

    Raises:
        UsageError: it is not.
    """
    if not (math.isfinite(value) and value > 0):
        raise UsageError(f"{name}: {value:g} is not a positive finite number", f"give a number such as {example}")
