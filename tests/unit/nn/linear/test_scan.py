"""Every way through the linear recurrence equals a loop over its definition: states, gradients, and those of these."""

import weakref

import pytest
import torch

from orrery.nn.linear import scan


def in_pieces(a, b, h):
    def piece(a, b, h):
        states = scan.all_states(a, b, h)
        return states, states[:, -1]

    return scan.chunked(piece, torch.broadcast_tensors(a, b), h, 4)[0]


WAYS = {"sequential": scan.sequential, "parallel": scan.parallel, "all_states": scan.all_states, "chunked": in_pieces}


def defined(a, b, h):
    states = []
    for t in range(b.shape[1]):
        h = scan.step(a[:, min(t, a.shape[1] - 1)], b[:, t], h)
        states.append(h)
    return torch.stack(states, 1)


def inputs(length, dtype, rows=2, channels=(3, 2), seed=0):
    """Return decays of every size between nothing and all, additions and a first state."""
    rng = torch.Generator().manual_seed(seed)
    a = torch.rand(rows, length, *channels, dtype=dtype, generator=rng)
    b = torch.randn(rows, length, *channels, dtype=dtype, generator=rng)
    h = torch.randn(rows, *channels, dtype=dtype, generator=rng)
    return [part.requires_grad_() for part in (a, b, h)]


def everything(way, given):
    """Return the states and the gradients of a loss that sees each of them, in size and in angle."""
    states = way(*given)
    seen = torch.view_as_real(states) if states.is_complex() else states
    weight = torch.randn(seen.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(3)).to(seen.dtype)
    return [states, *torch.autograd.grad((seen * weight + seen.sin()).sum(), given)]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("length", [1, 2, 3, 4, 5, 8, 13])
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128, torch.float32])
def test_every_way_is_the_definition(way, length, dtype):
    bound = 1e-4 if dtype == torch.float32 else 1e-9
    given = inputs(length, dtype)
    for numbers, expected in zip(everything(WAYS[way], given), everything(defined, given), strict=True):
        assert numbers.dtype == dtype
        torch.testing.assert_close(numbers, expected, rtol=bound, atol=bound)


@pytest.mark.parametrize("way", WAYS)
def test_decays_that_forget_everything_and_nothing_and_shared_ones(way):
    _, b, h = inputs(9, torch.float64)
    strong = torch.exp(-torch.tensor([0.0, 1e-3, 1.0, 50.0, 800.0, 1e30], dtype=torch.float64))
    for a in (
        strong.repeat(2, 9, 2)[:, :, :6].reshape(2, 9, 3, 2),
        torch.zeros(1, 9, 3, 1, dtype=torch.float64),
        torch.full((1, 1, 1, 2), 0.7, dtype=torch.float64),
    ):
        given = [a.requires_grad_(), b, h]
        for numbers, expected in zip(everything(WAYS[way], given), everything(defined, given), strict=True):
            assert numbers.isfinite().all()
            assert numbers.shape == expected.shape
            torch.testing.assert_close(numbers, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("way", [scan.sequential, scan.parallel])
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
def test_the_gradients_can_be_differentiated(way, dtype):
    given = inputs(5, dtype, rows=1, channels=(2,))
    assert torch.autograd.gradcheck(way, given)
    assert torch.autograd.gradgradcheck(way, given)


def test_a_wide_step_goes_in_sequence_and_a_narrow_one_in_pairs(monkeypatch):
    ran = []
    for name in ("sequential", "parallel"):
        monkeypatch.setattr(scan, name, lambda *given, name=name: ran.append(name) or given[1])
    for channels in (scan.WIDE, scan.WIDE - 1):
        scan.all_states(*(part.detach() for part in inputs(2, torch.float32, rows=1, channels=(channels,))))
    assert ran == ["sequential", "parallel"]


def test_pieces_keep_nothing_but_the_states_between_them():
    made, handed_on = [], []

    def piece(x, h):
        handed_on.append(h.untyped_storage().nbytes())
        wide = x[..., None].expand(*x.shape, 16)
        states = scan.all_states(torch.sigmoid(wide), wide, h)
        made.append(weakref.ref(states))
        return states.sum(-1), states[:, -1]

    x = torch.randn(1, 64, 8, requires_grad=True)
    y, last = scan.chunked(piece, (x,), torch.zeros(1, 8, 16), 16)
    assert y.shape == (1, 64, 8)
    assert [states() for states in made] == [None] * 4
    assert {*handed_on, last.untyped_storage().nbytes()} == {8 * 16 * 4}
    y.sum().backward()
    assert len(handed_on) == 8
    assert x.grad.abs().min() > 0
