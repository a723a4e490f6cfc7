"""Products with matrices in the blocks of a GGUF file: those with the unpacked matrix, whatever the rows."""

import ctypes

import gguf
import numpy as np
import pytest
import torch

pytest.importorskip("numba")
from llvmlite import binding, ir

from gguf_files import random_blocks
from orrery.checkpoints.gguf_blocks import BY_NAME, unpacked
from orrery.kernels import block_products, blocks, compiled
from orrery.kernels.processor import this_processor
from orrery.kernels.step.codes import BLOCKS, prepared_width

SHAPES = [(1, 256), (3, 512), (37, 768), (130, 2048)]
"""Output channels and inputs: less than what a thread takes at once, and more."""


def drawn(kind, shape, rows=33):
    rng = np.random.default_rng(0)
    return random_blocks(*shape, BY_NAME[kind], rng), rng.standard_normal((rows, shape[1]), np.float32)


def times(kind, weight, x):
    out = np.full((len(x), len(weight)), np.nan, np.float32)
    blocks.product(kind, weight, x, out)
    return out


def exact(kind, weight):
    return unpacked(torch.from_numpy(weight), BY_NAME[kind]).numpy().astype(np.float64)


def test_the_kinds_are_those_of_the_format():
    assert {name: (block, size) for name, (block, size, _) in blocks.KINDS.items()} == {
        name: (BY_NAME[name].block, BY_NAME[name].size) for name in BLOCKS
    }


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("kind", BLOCKS)
def test_a_product_is_that_with_the_unpacked_matrix(kind, shape):
    weight, x = drawn(kind, shape)
    expected = x.astype(np.float64) @ exact(kind, weight).T
    scale = np.abs(x.astype(np.float64)) @ np.abs(exact(kind, weight)).T
    assert (np.abs(times(kind, weight, x) - expected) <= 1e-6 * scale).all()
    weight[-1, 60 % BY_NAME[kind].size] ^= 0x31  # one byte is seen
    assert not np.array_equal(times(kind, weight, x)[:, -1], expected[:, -1].astype(np.float32))


@pytest.mark.parametrize("kind", BLOCKS)
def test_rows_of_any_number_of_blocks(kind):
    """What is kept behind a prepared row stands at multiples of sixteen, and is read eight or four at a time."""
    for blocks_of_a_row in (1, 3, 16, 17):
        weight, x = drawn(kind, (7, blocks_of_a_row * BY_NAME[kind].block), rows=5)
        expected = x.astype(np.float64) @ exact(kind, weight).T
        scale = np.abs(x.astype(np.float64)) @ np.abs(exact(kind, weight)).T
        assert (np.abs(times(kind, weight, x) - expected) <= 1e-6 * scale).all()


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("kind", BLOCKS)
def test_a_row_is_bit_for_bit_the_same_alone_and_in_a_batch(kind, threads):
    weight, x = drawn(kind, SHAPES[-1])
    compiled.set_threads(threads)
    together = times(kind, weight, x)
    for row in (0, 3, 31, 32):
        assert np.array_equal(times(kind, weight, x[row : row + 1])[0], together[row])
    compiled.set_threads(3 - threads)
    assert np.array_equal(times(kind, weight, x), together)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("kind", BLOCKS)
def test_what_is_written_out_is_the_unpacked_matrix_bit_for_bit(kind, shape):
    weight, _ = drawn(kind, shape)
    out = np.full(shape, np.nan, np.float32)
    blocks.write_out(kind, weight, out)
    assert np.array_equal(out, unpacked(torch.from_numpy(weight), BY_NAME[kind]).numpy())


@pytest.mark.parametrize("kind", [kind for kind in BLOCKS if kind != "MXFP4"])  # whose scales are finite
def test_what_is_no_number_stays_so(kind):
    """A scale that is infinite, as a damaged file may have it."""
    weight, x = drawn(kind, (4, 256), rows=5)
    at = 208 if kind == "Q6_K" else 0
    weight[1, at : at + 2] = np.frombuffer(np.float16(np.inf).tobytes(), np.uint8)
    products = times(kind, weight, x)
    assert not np.isfinite(products[:, 1]).any()
    assert np.isfinite(products[:, [0, 2, 3]]).all()


def test_every_scale_of_mxfp4_is_the_packages():
    """The smallest two are beneath the usual numbers of float32, the largest three reach beyond the finite ones."""
    stored = np.concatenate([np.arange(253, dtype=np.uint8)[:, None], np.full((253, 16), 0x71, np.uint8)], 1)
    expected = gguf.dequantize(stored, gguf.GGMLQuantizationType.MXFP4)
    out = np.empty((253, 32), np.float32)
    blocks.write_out("MXFP4", stored, out)
    assert np.array_equal(out, expected)
    assert np.array_equal(unpacked(torch.from_numpy(stored), BY_NAME["MXFP4"]).numpy(), expected)


def test_a_row_with_an_infinite_number_or_with_none_has_no_part_in_the_others():
    weight, x = drawn("Q4_1", (4, 256), rows=5)
    x[1, 7], x[2, 9], x[3] = np.inf, np.nan, 0.0
    products = times("Q4_1", weight, x)
    assert not np.isfinite(products[1:3]).any()
    assert (products[3] == 0).all()
    assert np.isfinite(products[[0, 4]]).all()
    x[3] = 1e-35  # smaller than what a row is parted for
    assert np.abs(times("Q4_1", weight, x)[3]).max() < 1e-30


class OtherProcessor:
    """Products of channels with some rows as they are compiled for other instructions than this processor's."""

    def __init__(self, kind, rows, features):
        binding.initialize_native_target()
        binding.initialize_native_asmprinter()
        module = ir.Module()
        for function in (
            block_products.product_function(module, kind, rows, features),
            block_products.preparation(module, features),
        ):
            function.linkage = "external"
        machine = binding.Target.from_default_triple().create_target_machine(cpu="x86-64", features=features)
        self.engine = binding.create_mcjit_compiler(binding.parse_assembly(str(module)), machine)
        self.engine.finalize_object()
        self.prepared = self.function("orrery_blocks_prepared", 3)
        self.product = self.function(f"orrery_blocks_{kind}_{rows}", 8)
        self.kind, self.rows = kind, rows

    def function(self, name, arguments):
        return ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * arguments)(self.engine.get_function_address(name))

    def times(self, weight, x):
        width, out = prepared_width(x.shape[1]), np.full((self.rows, len(weight)), np.nan, np.float32)
        ready = np.zeros((self.rows, width), np.float32)
        for row in range(self.rows):
            self.prepared(x.ctypes.data + x.strides[0] * row, ready.ctypes.data + 4 * width * row, x.shape[1])
        many = weight.shape[1] // BY_NAME[self.kind].size
        given = weight.ctypes.data, weight.strides[0], len(weight), many
        self.product(*given, ready.ctypes.data, 4 * width, out.ctypes.data, out.strides[0])
        return out


@pytest.mark.skipif(
    not {"avx2", "fma", "f16c"} <= this_processor().flags, reason="the instructions of AVX2 are not here"
)
@pytest.mark.parametrize("rows", [1, 4])
@pytest.mark.parametrize("kind", BLOCKS)
def test_whole_numbers_and_float32_give_the_same_products(kind, rows):
    """Whichever of the two this processor has: both are compiled, and both are near those of float64."""
    weight, x = drawn(kind, (3, 768), rows)
    x[:, 5] *= 300  # as some channels of a model stand out
    expected = x.astype(np.float64) @ exact(kind, weight).T
    scale = np.abs(x.astype(np.float64)) @ np.abs(exact(kind, weight)).T
    whole, single = (
        OtherProcessor(kind, rows, features).times(weight, x) for features in ("+avx2,+fma,+f16c", "+avx,+fma,+f16c")
    )
    assert (np.abs(whole - expected) <= 1e-6 * scale).all()
    assert (np.abs(single - expected) <= 1e-6 * scale).all()
    assert not np.array_equal(whole, single)  # two ways indeed
