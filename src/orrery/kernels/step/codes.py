"""The functions of numbers that a step computes, by the number that stands for each."""

ACTIVATIONS = ("linear", "relu", "relu_squared", "silu", "gelu", "gelu_tanh", "gelu_sigmoid", "tanh", "sigmoid")
"""The activations; the place of a name is the number by which `elementwise` knows it."""
SOFT_CAP, CLAMP, CLAMP_ABOVE, SCALED_SUM, SCALED_SIGMOID, SCALED, ROUNDED = range(
    len(ACTIVATIONS), len(ACTIVATIONS) + 7
)
"""``p tanh(x / p)``; ``min(max(x, -p), p)``; ``min(x, p)``; ``p x + y``; ``x sigmoid(p x)``; ``p x``; x in bfloat16."""
TIMES = 32
"""Added to the number of a function of x: multiply it with y."""

BLOCKS = ("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q4_K", "Q5_K", "Q6_K", "MXFP4")
"""Kinds of blocks in which a matrix is multiplied as it is stored; the place of a name is its number."""
TURN = 32
"""Channels of a product that a thread computes at once: whole lines of memory, and few calls (16: 2 % slower)."""
FLOAT4 = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
"""The numbers of MXFP4 without a sign: two bits of an exponent and one of a fraction (Open Compute Project 2023)."""


def prepared_width(width: int) -> int:
    """Return how many float32 numbers a row takes that is prepared for products with blocks (``block_products``).

    As many as it has, a sum of every 32 up to a multiple of sixteen, and sixteen more, the first of which is a scale.
    """
    return width + (width // 32 + 15) // 16 * 16 + 16
