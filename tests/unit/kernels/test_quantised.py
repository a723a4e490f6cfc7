"""Products with matrices of whole numbers: equal to the product with the written-out matrix, whatever the rows."""

import hashlib
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("numba")
from orrery.kernels import compiled, readiness
from orrery.kernels.quantised import product

SHAPES = [
    (40, 512, 128),
    (35, 256, 256),
    (13, 256, 32),
    (7, 672, 96),
    (5, 60, 20),
    (3, 34, 34),
    (1, 2, 2),
    (17, 224, 112),
]
"""Output channels, inputs and the inputs of a group: whole lines of memory, parts of one, and parts of a vector."""


def written_out(whole, scale):
    """Return the matrix in float64."""
    grouped = whole.astype(np.float64).reshape(len(whole), scale.shape[1], -1)
    return (grouped * scale[:, :, None]).reshape(len(whole), -1)


def packed(whole, group):
    """Return numbers from -8 to 7 two to a byte, the first half of each group in the low bits."""
    low, high = np.split((whole + 8).astype(np.uint8).reshape(len(whole), -1, group), 2, axis=2)
    return np.ascontiguousarray((low | high << 4).reshape(len(whole), -1))


def drawn(bits, shape, rows=33, seed=0):
    outputs, inputs, group = shape
    rng = np.random.default_rng(seed)
    whole = rng.integers(-8, 8, (outputs, inputs)) if bits == 4 else rng.integers(-127, 128, (outputs, inputs))
    scale = rng.uniform(0.1, 1, (outputs, inputs // group)).astype(np.float32)
    weight = packed(whole, group) if bits == 4 else whole.astype(np.int8)
    return whole, weight, scale, rng.standard_normal((rows, inputs), np.float32)


def times(x, weight, scale):
    out = np.full((len(x), len(weight)), np.nan, np.float32)
    product(weight, scale, x, out)
    return out


def deviation(numbers, expected):
    return np.abs(numbers - expected).max() / max(1.0, np.abs(expected).max())


@pytest.mark.parametrize(
    "layers", [None, [], ["workqueue.so"], ["omppool.so"], ["workqueue.so", "omppool.so"]], ids=str
)
def test_threads_need_the_layer_that_several_may_enter(tmp_path, monkeypatch, layers):
    folder = tmp_path / "np" / "ufunc"
    folder.mkdir(parents=True)
    for name in layers or ():
        (folder / name).write_bytes(b"")
    module_spec = None if layers is None else SimpleNamespace(origin=tmp_path / "__init__.py")
    monkeypatch.setattr(compiled, "find_spec", lambda name: module_spec)
    assert compiled.has_openmp.__wrapped__() == ("omppool.so" in (layers or ()))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("bits", [8, 4])
def test_a_product_is_that_of_the_written_out_matrix(bits, shape):
    whole, weight, scale, x = drawn(bits, shape)
    expected = x.astype(np.float64) @ written_out(whole, scale).T
    assert deviation(times(x, weight, scale), expected) < 1e-6
    wrong = whole.copy()
    wrong[-1, -1] = -wrong[-1, -1] or 1  # the comparison sees the last weight
    assert deviation(times(x, weight, scale), x.astype(np.float64) @ written_out(wrong, scale).T) > 1e-4


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("bits", [8, 4])
def test_a_row_is_the_same_alone_and_in_any_batch(bits, shape):
    _, weight, scale, x = drawn(bits, shape)
    together = times(x, weight, scale)
    for rows in (1, 2, 3, 4, 7, 32):
        assert np.array_equal(times(x[-rows:].copy(), weight, scale), together[-rows:])


@pytest.mark.parametrize("bits", [8, 4])
def test_what_is_no_number_stays_in_its_row(bits):
    _, weight, scale, x = drawn(bits, (40, 512, 128))
    clean = times(x, weight, scale)
    x[2, 7] = np.nan
    products = times(x, weight, scale)
    assert np.isnan(products[2]).all()
    assert np.array_equal(np.delete(products, 2, 0), np.delete(clean, 2, 0))


def test_many_threads_multiply_at_once():
    cases = [drawn(bits, (40, 512, 128), seed=seed) for seed in range(4) for bits in (8, 4)]
    expected = [times(x, weight, scale) for _, weight, scale, x in cases]

    def again(case):
        _, weight, scale, x = case
        return [times(x, weight, scale) for _ in range(20)]

    with ThreadPoolExecutor(8) as pool:
        for one, products in zip(expected, pool.map(again, cases), strict=True):
            assert all(np.array_equal(one, other) for other in products)


def test_torch_keeps_its_number_of_threads():
    # In a program of its own: numba starts its threads once.
    code = """if True:
        import torch
        torch.set_num_threads(1)
        from orrery.kernels import quantised
        from orrery.kernels.compiled import set_threads
        set_threads(1)
        assert torch.get_num_threads() == 1
        """
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "4"}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)


def fingerprint():
    """Return a digest of the products of every shape, bit for bit."""
    digest = hashlib.sha256()
    for bits in (8, 4):
        for shape in SHAPES[:4]:
            _, weight, scale, x = drawn(bits, shape, rows=5)
            digest.update(times(x, weight, scale).tobytes())
    return digest.hexdigest()


@pytest.mark.slow
def test_an_older_processor_computes_the_same_bits(tmp_path):
    features = subprocess.run(
        [sys.executable, "-c", "import llvmlite.binding as b; print(b.get_host_cpu_features().get('avx2', False))"],
        capture_output=True,
        text=True,
        check=True,
    )
    if features.stdout.strip() != "True":
        pytest.skip("this processor is older itself")
    older = {"NUMBA_CPU_NAME": "haswell", "NUMBA_CPU_FEATURES": "+avx2,+fma", "NUMBA_CACHE_DIR": str(tmp_path)}
    here = os.path.dirname(__file__)
    program = f"import sys; sys.path.insert(0, {here!r}); import test_quantised as t; print(t.fingerprint())"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env={**os.environ, **older}
    )
    assert done.stdout.strip() == fingerprint()


@pytest.mark.parametrize(("asked", "is_ready", "used"), [
    ("eager", True, False), ("auto", True, True), ("auto", False, False), ("compiled", False, True),
])  # fmt: skip
def test_nobody_waits_for_a_compiler_who_has_not_asked_for_it(monkeypatch, asked, is_ready, used):
    begun = []
    monkeypatch.setenv("ORRERY_KERNEL", asked)
    monkeypatch.setattr(readiness, "ready", lambda: is_ready)
    monkeypatch.setattr(readiness, "build_beside", lambda: begun.append(True))
    assert readiness.at_hand.__wrapped__() is used
    assert bool(begun) is (asked == "auto" and not is_ready)
