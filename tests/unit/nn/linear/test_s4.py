"""S4: every form equals a dense matrix that is discretised and iterated; a new one is HiPPO-LegS."""

import numpy
import pytest
import torch

from mixer_forms import inputs, randomised, wrong
from orrery.errors import UsageError
from orrery.laws.models import random_ids, tiny
from orrery.models.initialise import initialise
from orrery.nn.linear import diagonal_low_rank, linear_system
from orrery.nn.linear.s4 import S4, hippo
from orrery.nn.segments import PackedSegments

WIDTH = 3
FORMS = ["step", "parallel", "chunked"]


def dense(mixer):
    """Return the whole complex matrix, B, C of all channels and the steps: all conjugates written down."""
    p = dict(mixer.named_parameters())
    pairs = lambda name: torch.complex(*p[name].unflatten(-1, (-1, 2)).unbind(-1))  # noqa: E731
    both = lambda x: torch.cat([x, x.conj()], -1)  # noqa: E731
    low = both(pairs("low_rank"))
    a = torch.diag(both(torch.complex(-p["fading_log"].exp(), p["frequency"]))) - low[:, None] * low.conj()
    return a, both(pairs("write")), both(pairs("read")), p["step_log"].exp()


def by_a_dense_matrix(mixer, x, before):
    """Discretise each channel's whole matrix with the trapezoidal rule, and iterate."""
    p, (a, b, c, dt) = dict(mixer.named_parameters()), dense(mixer)
    one, halves = torch.eye(len(a), dtype=a.dtype), torch.complex(*before[0].unflatten(-1, (-1, 2)).unbind(-1))
    h, said = list(torch.cat([halves, halves.conj()], -1).unbind(1)), []
    matrices = [torch.linalg.inv(one - step / 2 * a) for step in dt]
    for t in range(x.shape[1]):
        read = []
        for f, (inverse, step) in enumerate(zip(matrices, dt, strict=True)):
            h[f] = h[f] @ (inverse @ (one + step / 2 * a)).T + x[:, t, f, None] * step * (inverse @ b)
            read.append((h[f] * c[f]).sum(-1).real)
        y = torch.stack(read, 1) + p["skip"] * x[:, t]
        y = y / 2 * (1 + torch.erf(y / 2**0.5))
        out, gate = (y @ p[f"mix.{name}.weight"].T + p[f"mix.{name}.bias"] for name in ("out", "gate"))
        said.append(out / (1 + torch.exp(-gate)))
    return torch.stack(said, 1), (torch.view_as_real(torch.stack(h, 1)[..., : len(a) // 2]).flatten(-2),)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("length", [1, 2, 3, 4, 9])
def test_every_form_is_the_dense_matrix(monkeypatch, form, length):
    monkeypatch.setattr(linear_system, "PIECE", 4)
    mixer = randomised(S4.Spec(state=6).build(WIDTH))
    assert wrong(mixer, form, by_a_dense_matrix, *inputs(mixer, WIDTH, length), 1e-9) == {}
    mixer = mixer.float()
    assert wrong(mixer, form, by_a_dense_matrix, *inputs(mixer, WIDTH, length), 1e-4) == {}


@pytest.mark.parametrize("form", ["parallel", "chunked"])
def test_rows_of_several_pieces_with_steps_of_every_size(form):
    mixer = randomised(S4.Spec(state=16).build(WIDTH))
    with torch.no_grad():
        mixer.step_log.copy_(torch.tensor([1e-3, 0.1, 5.0]).log())
    by_step = lambda mixer, x, before: mixer.compute("step", x, None, before)  # noqa: E731
    for length in (2 * linear_system.PIECE, 2 * linear_system.PIECE + 3):
        assert wrong(mixer, form, by_step, *inputs(mixer, WIDTH, length), 1e-9) == {}
    mixer = mixer.float()
    assert wrong(mixer, form, by_step, *inputs(mixer, WIDTH, 150), 1e-4) == {}


@pytest.mark.parametrize("few", [0, 512])
def test_outputs_whose_states_nobody_asks_for_are_those_of_the_steps(monkeypatch, few):
    """A row moved step by step gives the kernel that doubled matrices give, and its gradient."""
    monkeypatch.setattr(diagonal_low_rank, "FEW", few)
    mixer = randomised(S4.Spec(state=6).build(WIDTH))
    x, _ = inputs(mixer, WIDTH, 7)
    needed = [x, *mixer.parameters()]
    for segments in (None, PackedSegments.of(torch.arange(7) < torch.tensor([[7], [4]]))):
        empty = mixer.begin(x)
        outputs, expected = mixer.outputs(x, segments, empty)[0], mixer.compute("step", x, segments, empty)[0]
        assert float((outputs - expected).detach().abs().max()) < 1e-12
        for a, b in zip(*(torch.autograd.grad(y.pow(2).sum(), needed) for y in (outputs, expected)), strict=True):
            assert float((a - b).abs().max()) < 1e-9 * max(1, float(b.abs().max()))


def test_a_new_one_is_hippo_legs():
    """Its kernel is that of the real matrix of the paper, in the Legendre basis, for any C there."""
    size, length, mixer = 8, 20, S4.Spec(state=8).build(2).double()
    rng = numpy.random.default_rng(0)
    n, k = numpy.mgrid[:size, :size]
    a = -numpy.where(n > k, numpy.sqrt((2 * n + 1) * (2 * k + 1)), numpy.where(n == k, n + 1, 0.0))
    b, low, c = numpy.sqrt(2 * n[:, 0] + 1.0), numpy.sqrt(n[:, 0] + 0.5), rng.normal(size=(2, size))
    values, basis = numpy.linalg.eig(a + numpy.outer(low, low))
    basis = basis[:, values.imag > 0][:, numpy.argsort(values.imag[values.imag > 0])]
    basis = basis / numpy.linalg.norm(basis, axis=0)
    basis = basis * (basis.conj().T @ b) / abs(basis.conj().T @ b)  # so that b is real there
    with torch.no_grad():
        mixer.read.copy_(torch.view_as_real(torch.tensor(c @ basis)).flatten(1))
        mixer.step_log.copy_(torch.tensor([0.05, 0.5]).log())
    kernel_found = mixer.system(torch.float64).kernel(length).detach().numpy()
    for f, dt in enumerate((0.05, 0.5)):
        left = numpy.linalg.inv(numpy.eye(size) - dt / 2 * a)
        state, kernel = left @ (dt * b), []
        for _ in range(length):
            kernel.append(c[f] @ state)
            state = left @ (numpy.eye(size) + dt / 2 * a) @ state
        assert abs(kernel_found[f] - kernel).max() < 1e-5  # the weights are float32 numbers


def test_the_basis_is_exact():
    a, p, b = hippo(32)
    assert torch.equal(a.real, torch.full((16,), -0.5, dtype=torch.float64))
    assert float(a.imag.min()) > 0
    assert float(b.imag.abs().max()) < 1e-10
    assert abs(float(p.abs().square().sum()) - 32**2 / 4) < 1e-9  # half of the sum of n + 1/2
    assert abs(float(b.abs().square().sum()) - 32**2 / 2) < 1e-9


def test_weights_of_a_new_one():
    model = torch.nn.Sequential(S4.Spec(state=8).build(512))
    initialise(model, depth=1, seed=3)
    dt = model[0].step_log.detach().exp()
    assert 0.001 <= float(dt.min()) < 0.0012
    assert 0.085 < float(dt.max()) <= 0.1001
    assert abs(float(model[0].read.detach().square().mean()) - 0.5) < 0.05
    with pytest.raises(UsageError, match="a state of 5 numbers"):
        S4.Spec(state=5).build(WIDTH)


def test_a_session_needs_no_more_memory_the_longer_it_is():
    model = tiny("s4")
    sizes = [model.start(random_ids(2, length), 48)[1].bytes() for length in (1, 5, 40)]
    assert len(set(sizes)) == 1
