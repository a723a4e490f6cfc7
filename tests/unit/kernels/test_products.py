"""The products of the compiled step: what each kind multiplies, and that a processor without bfloat16 does the same."""

import os
import subprocess
import sys

import numba
import numpy as np
import pytest
import torch

from orrery.kernels.step import instructions as code
from orrery.kernels.step import run, vectors
from orrery.kernels.step.entries import compiled_entries
from orrery.kernels.step.listing import PAIRS
from orrery.kernels.step.vectors import CHANNELS, FLOAT32, ROWS

ENTRIES = compiled_entries()


def product(kind, x, w):
    """Return ``x w^T`` by `run.multiply`, of float32 numbers or of those of bfloat16."""
    (rows, length), channels = x.shape, len(w)
    bytes_each = 2 if kind == PAIRS else 4
    stride = -(-length * bytes_each // 64) * 16
    given = torch.full((rows, stride * 4 // bytes_each), float("nan"), dtype=x.dtype)
    given[:, :length] = x
    work = np.zeros(rows * (stride + channels), np.float32)
    work[: rows * stride] = given.view(torch.float32).numpy().reshape(-1)
    row = {
        code.KIND: kind, code.MATRIX: w.data_ptr(), code.STEP: w.stride(0) * bytes_each, code.CHANNELS: channels,
        code.LENGTH: length, code.FROM_WIDTH: stride, code.TO: stride, code.TO_WIDTH: channels,
    }  # fmt: skip
    table = np.array([[row.get(column, 0) for column in range(13)]], np.int64)
    run.multiply(table, 0, 1, -(-channels // CHANNELS), work.ctypes.data, rows, ENTRIES)
    return torch.from_numpy(work[rows * stride :].reshape(rows, channels))


@pytest.mark.parametrize("kind", [FLOAT32, PAIRS])
@pytest.mark.parametrize("length", [1, 15, 16, 31, 33, 64, 1000, 3000])
@pytest.mark.parametrize("rows", [1, 3, 4, 9])
def test_a_product_is_that_of_the_stored_numbers_and_a_row_does_not_depend_on_the_others(kind, length, rows):
    rng = torch.Generator().manual_seed(length)
    dtype = torch.bfloat16 if kind == PAIRS else torch.float32
    x, w = (torch.randn(many, length, generator=rng).to(dtype) for many in (rows, 11))
    numbers = product(kind, x, w)
    exact = x.double() @ w.double().T
    assert (numbers - exact).abs().max() <= 1e-6 * length**0.5 * exact.abs().max().clamp(min=1)
    assert all(torch.equal(product(kind, x[row : row + 1], w)[0], numbers[row]) for row in range(rows))


def test_a_product_is_the_same_bit_for_bit_whatever_registers_a_processor_has(monkeypatch):
    rng, found = np.random.default_rng(0), {}
    matrix, rows = (rng.standard_normal((count, 71), np.float32) for count in (CHANNELS, ROWS))
    for wide in (False, True):
        monkeypatch.setattr(vectors, "_has", lambda feature, wide=wide: wide and feature == "avx512f")

        @numba.njit
        def multiply(number, matrix, step, vector, length, out):
            vectors.products(number, matrix, step, vector, step, length, out, 4 * CHANNELS)

        for together in range(1, ROWS + 1):
            for length in (5, 16, 21, 64, 71):
                out = np.zeros((ROWS, CHANNELS), np.float32)
                number = vectors.variant(FLOAT32, CHANNELS, together)
                addresses = (number, matrix.ctypes.data, matrix.strides[0], rows.ctypes.data, length, out.ctypes.data)
                multiply(*addresses)
                found[wide, together, length] = out[:together]
                expected = rows[:together, :length].astype(np.float64) @ matrix[:, :length].T
                assert np.abs(out[:together] - expected).max() < 1e-4
                assert not out[together:].any()
    for together in range(1, ROWS + 1):
        for length in (5, 16, 21, 64, 71):
            assert np.array_equal(found[False, together, length], found[True, together, length])


@pytest.mark.slow
def test_a_processor_without_bfloat16_multiplies_the_same_numbers():
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__, "-k", "stored_numbers"]
    done = subprocess.run(words, env=os.environ | {"NUMBA_CPU_NAME": "haswell"}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
