"""The short convolution against torch's, whole and in parts."""

import pytest
import torch
import torch.nn.functional as F

from orrery.nn.linear.short_convolution import ShortConvolution


@pytest.fixture(params=[True, False])
def short(request):
    torch.manual_seed(0)
    made = ShortConvolution(6, 4, bias=request.param).double()
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.normal_()
    return made


def expected(short, x):
    return F.conv1d(F.pad(x.mT, (3, 0)), short.weight, short.bias, groups=6).mT


def test_it_is_torchs_causal_convolution_whole_and_step_by_step(short):
    x, said = torch.randn(2, 9, 6, dtype=torch.float64), []
    before = short.begin(x)
    whole, last = short.parallel(x, None, before)
    for one in x.unbind(1):
        y, before = short.step(one, before)
        said.append(y)
    assert torch.allclose(whole, expected(short, x), rtol=0, atol=1e-12)
    assert torch.allclose(torch.stack(said, 1), whole, rtol=0, atol=1e-12)
    assert torch.equal(last, before)
    assert torch.equal(last, x[:, -3:])


def test_it_goes_on_from_its_state(short):
    x = torch.randn(2, 9, 6, dtype=torch.float64)
    for cut in (1, 2, 5):
        first, state = short.parallel(x[:, :cut], None, short.begin(x))
        second, _ = short.parallel(x[:, cut:], None, state)
        assert torch.allclose(torch.cat([first, second], 1), expected(short, x), rtol=0, atol=1e-12)


def test_padding_on_the_right_is_not_in_the_state(short):
    x = torch.randn(3, 7, 6, dtype=torch.float64)
    lengths = (7, 2, 4)
    real = torch.arange(7) < torch.tensor(lengths)[:, None]
    y, after = short.parallel(x, real, torch.randn(3, 3, 6, dtype=torch.float64))
    assert y.shape == x.shape
    begun = torch.randn(3, 3, 6, dtype=torch.float64)
    _, after = short.parallel(x, real, begun)
    for row, length in enumerate(lengths):
        assert torch.equal(after[row], torch.cat([begun[row], x[row, :length]])[-3:])


def test_autocast_leaves_the_format_of_the_state(short):
    short.float()
    x = torch.randn(2, 5, 6)
    y, after = short.parallel(x.bfloat16(), None, short.begin(x))
    one, last = short.step(x[:, 0].bfloat16(), short.begin(x))
    assert (y.dtype, after.dtype, one.dtype, last.dtype) == (torch.bfloat16, torch.float32) * 2
