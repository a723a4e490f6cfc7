"""The straight line through the logarithms of points: the nearest power law."""

import math
from collections.abc import Sequence

import numpy as np


def log_line(x: Sequence[int | float], y: Sequence[int | float]) -> tuple[float, float]:
    """Return ``a`` and ``log c`` of the best ``y = c x^a`` in logarithms, by least squares."""
    slope, height = np.polyfit([math.log(one) for one in x], [math.log(one) for one in y], 1)
    return float(slope), float(height)
