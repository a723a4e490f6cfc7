import resource

import pytest
import torch

from orrery.nn.cache import blank as module
from orrery.nn.cache.blank import LARGE, blank
from orrery.nn.cache.row_buffer import RowBuffer


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("numbers", [1, LARGE])
def test_blanks_are_zeros_that_can_be_written(dtype, numbers):
    x = blank(torch.ones(1, dtype=dtype), (2, numbers, 3))
    assert (x.shape, x.dtype) == ((2, numbers, 3), dtype)
    assert not x.any()
    x[1, -1] = 5
    assert x.sum() == 15
    copy = x.clone()
    del x
    assert copy.sum() == 15


def test_a_system_that_has_no_pages_leaves_it_to_torch(monkeypatch):
    def refused(*args, **kwargs):
        raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr(module.mmap, "mmap", refused)
    assert not blank(torch.ones(1), (LARGE,)).any()


def test_slots_that_no_token_reaches_take_no_memory():
    buffer = RowBuffer()
    buffer.put(0, torch.ones(8, 4, 64, 16))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    buffer.widen(2**17 - 64)  # 256 MiB
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 32 * 2**10
    assert buffer.depths[0][:, :, :64].all()
    assert not buffer.depths[0][3, 2, 64:].any()
