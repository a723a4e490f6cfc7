"""A step's cost is what torch's counter sees of a real one, for every family; equal blocks are counted, not run."""

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from orrery.accounting.step_cost import example_batch, step_cost
from orrery.families import load_family, names
from orrery.models.model import apply


@pytest.fixture
def countable():
    """Let torch take kernels that its counter knows."""
    onednn = torch.backends.mkldnn
    before, onednn.enabled = onednn.enabled, False
    with sdpa_kernel(SDPBackend.MATH):
        yield
    onednn.enabled = before


def counted(spec, rows, length):
    """What torch's counter sees of a real step: the forward pass, and both passes."""
    torch.manual_seed(0)
    model, batch = spec.build(0).train(), example_batch(spec, rows, length)
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model(batch)
    with FlopCounterMode(display=False) as both:
        sum(part.float().sum() for part in model(batch).values() if isinstance(part, torch.Tensor)).backward()
    return counter.get_total_flops(), both.get_total_flops()


@pytest.mark.parametrize("family", names())
def test_operations_are_those_that_torch_counts(countable, family):
    spec = load_family(family).spec(load_family(family).TINY)
    found = step_cost(spec, 2, 8, torch.float32, apply)
    assert (found.forward.total, found.training.total) == counted(spec, 2, 8)
