"""The compiled pass of word2vec: stochastic gradient descent over labelled rows, one example after another.

Needs numba. Its specification is `orrery.models.word2vec.definition`.
"""

import inspect
import math
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from orrery.kernels.compiled import compiled

LINE = 16
"""Numbers of float32 in one cache line of 64 bytes: rows are padded to a multiple of it."""

AHEAD = 4
"""How many target rows ahead are asked for: measured, 57 ns a target of width 112 against 103 ns without."""


def _asking(_context: Any, array: Any, row: Any, column: Any) -> Any:  # pragma: no cover (compiled)
    """Ask the processor for the cache line that holds array[row, column]: rows come in random order."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = signature.args[0]
        place = [context.cast(builder, arguments[k], signature.args[k], types.intp) for k in (1, 2)]
        view = context.make_array(kind)(context, builder, arguments[0])
        pointer = cgutils.get_item_pointer(context, builder, kind, view, place, wraparound=False)
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        call = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        function = cgutils.get_or_insert_function(builder.module, call, "llvm.prefetch.p0")
        # 1: to be written; 3: keep in every cache; 1: data, not instructions.
        builder.call(function, [builder.bitcast(pointer, byte), number(1), number(3), number(1)])
        return context.get_dummy_value()

    return types.void(array, row, column), generate


_prefetch: Any = intrinsic(inspect.unwrap(_asking))


@compiled
def _predict(
    hidden: NDArray[Any],
    error: NDArray[Any],
    weights: NDArray[Any],
    targets: NDArray[np.int32],
    labels: NDArray[np.bool_],
    first: int,
    last: int,
    rate: float,
) -> float:
    """Step the target rows of one example, add to ``error`` what its input is owed, and return its loss."""
    width, one = weights.shape[1], weights.dtype.type(1)
    loss, product = 0.0, 1.0
    for k in range(first, last):
        coming, row = targets[min(k + AHEAD, len(targets) - 1)], targets[k]
        for i in range(0, width, LINE):
            _prefetch(weights, coming, i)
        score = weights.dtype.type(0)
        for i in range(width):
            score += hidden[i] * weights[row, i]
        # signed > 0 where the model is right; its loss log(1 + exp(-signed)) never overflows this way.
        signed = score if labels[k] else -score
        small = weights.dtype.type(math.exp(-abs(signed)))
        product *= 1.0 + small
        if product > 1e100:  # one logarithm for many factors
            loss, product = loss + math.log(product), 1.0
        if signed < 0:
            loss -= signed
        step = weights.dtype.type(rate) * ((small if signed >= 0 else one) / (one + small))
        if not labels[k]:
            step = -step
        for i in range(width):
            weight = weights[row, i]
            error[i] += step * weight
            weights[row, i] = weight + step * hidden[i]
    return loss + math.log(product)


@compiled
def descend(
    vectors: NDArray[Any],
    weights: NDArray[Any],
    inputs: NDArray[np.int32],
    input_ends: NDArray[np.int64],
    targets: NDArray[np.int32],
    target_ends: NDArray[np.int64],
    labels: NDArray[np.bool_],
    rate: float,
) -> float:
    r"""Take one step per example, in place, and return the sum of the losses before each step.

    .. math:: h = \frac1n \sum_i v_i, \quad L = -\sum_k \log \sigma(\pm h \cdot w_k), \quad
              w_k \mathrel{+}= \eta (y_k - \sigma(h \cdot w_k)) h, \quad
              v_i \mathrel{+}= \frac{\eta}{n} \sum_k (y_k - \sigma(h \cdot w_k)) w_k

    Papers: Mikolov et al. 2013. Differs from the C program in three ways: the sigmoid is exact instead of a
    table, no large score is skipped, and the gradient of the mean carries its 1/n (Irsoy et al. 2021). A row that
    stands twice among the targets of one example is stepped twice, the second time from where the first left it.
    """
    width = vectors.shape[1]
    hidden, error = np.empty(width, vectors.dtype), np.empty(width, vectors.dtype)
    loss = 0.0
    first_input = first_target = 0
    for example in range(len(input_ends)):
        last_input, last_target = input_ends[example], target_ends[example]
        share = vectors.dtype.type(1.0 / (last_input - first_input))
        for i in range(width):
            hidden[i] = error[i] = 0
        for k in range(first_input, last_input):
            for i in range(width):
                hidden[i] += share * vectors[inputs[k], i]
        loss += _predict(hidden, error, weights, targets, labels, first_target, last_target, rate)
        for k in range(first_input, last_input):
            for i in range(width):
                vectors[inputs[k], i] += share * error[i]
        first_input, first_target = last_input, last_target
    return loss
