"""Matrices in blocks that are unpacked to be multiplied once, into memory of the thread's own."""

from threading import Thread

import numpy as np
import pytest
import torch

pytest.importorskip("numba")
from gguf_files import random_blocks
from orrery.checkpoints.gguf_blocks import BY_NAME, unpacked
from orrery.tuning import _stored
from orrery.tuning._stored import Blocks, multiply


@pytest.fixture(autouse=True)
def _by_the_kernel(monkeypatch):
    monkeypatch.setattr(_stored, "at_hand", lambda: True)


def drawn(rows, width, seed=0):
    return torch.from_numpy(random_blocks(rows, width, BY_NAME["Q4_K"], np.random.default_rng(seed)))


def test_a_product_of_many_rows_in_several_parts_is_that_with_the_matrix(monkeypatch):
    weight, x = drawn(37, 512), torch.randn(40, 512, generator=torch.Generator().manual_seed(0))
    expected = x @ unpacked(weight, BY_NAME["Q4_K"]).T
    for part in (1 << 22, 10 * 512, 1):
        monkeypatch.setattr(_stored, "PART", part)
        assert torch.allclose(multiply(x, Blocks(weight, BY_NAME["Q4_K"])), expected, atol=1e-4)


def test_what_is_kept_is_not_written_over():
    one, other = (Blocks(drawn(8, 256, seed), BY_NAME["Q4_K"]) for seed in (1, 2))
    kept = one.written(0, 8)
    expected = kept.clone()
    other.passing(0, 8)
    assert torch.equal(kept, expected)
    assert torch.equal(one.passing(0, 8), expected)


def test_threads_have_memory_of_their_own():
    stored, passed_rows = Blocks(drawn(8, 256), BY_NAME["Q4_K"]), []
    here = stored.passing(0, 8)
    assert stored.passing(0, 8).data_ptr() == here.data_ptr()
    thread = Thread(target=lambda: passed_rows.append(stored.passing(0, 8)))
    thread.start()
    thread.join()
    assert passed_rows[0].data_ptr() != here.data_ptr()
    assert torch.equal(passed_rows[0], here)
