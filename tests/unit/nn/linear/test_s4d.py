"""S4D: every form equals its differential equation, solved wave by wave; new waves are those of the paper."""

import math

import pytest
import scipy.linalg
import torch

from mixer_forms import inputs, randomised, wrong
from orrery.errors import UsageError
from orrery.laws.models import random_ids, tiny
from orrery.models.initialise import initialise
from orrery.nn.linear import linear_system
from orrery.nn.linear.s4d import S4D

WIDTH = 4
FORMS = ["step", "parallel", "chunked"]


def by_the_paper(mixer, x, before):
    """One channel, one wave, one token after the other, in real numbers: a wave is a rotation that shrinks."""
    p, waves = dict(mixer.named_parameters()), mixer.frequency.shape[1]
    h = before[0].unflatten(-1, (waves, 2)).unbind(-1)
    dt, fading, turning = p["step_log"].exp()[:, None], -p["fading_log"].exp(), p["frequency"]
    size, angle = (dt * fading).exp(), dt * turning
    left = (size * angle.cos(), size * angle.sin())
    square = fading**2 + turning**2  # (left - 1) / a is (left - 1) conj(a) / |a|^2
    added = (
        ((left[0] - 1) * fading + left[1] * turning) / square,
        (left[1] * fading - (left[0] - 1) * turning) / square,
    )
    c, said = p["read"].unflatten(-1, (waves, 2)).unbind(-1), []
    for t in range(x.shape[1]):
        u = x[:, t, :, None]
        h = (left[0] * h[0] - left[1] * h[1] + added[0] * u, left[0] * h[1] + left[1] * h[0] + added[1] * u)
        y = 2 * (c[0] * h[0] - c[1] * h[1]).sum(-1) + p["skip"] * x[:, t]
        y = y / 2 * (1 + torch.erf(y / 2**0.5))
        out, gate = (y @ p[f"mix.{name}.weight"].T + p[f"mix.{name}.bias"] for name in ("out", "gate"))
        said.append(out / (1 + torch.exp(-gate)))
    return torch.stack(said, 1), (torch.stack(h, -1).flatten(-2),)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("length", [1, 3, 4, 9])
def test_every_form_is_the_papers(monkeypatch, form, length):
    monkeypatch.setattr(linear_system, "PIECE", 4)
    mixer = randomised(S4D.Spec(waves=3).build(WIDTH))
    assert wrong(mixer, form, by_the_paper, *inputs(mixer, WIDTH, length), 1e-9) == {}
    mixer = mixer.float()
    assert wrong(mixer, form, by_the_paper, *inputs(mixer, WIDTH, length), 1e-4) == {}


@pytest.mark.parametrize("form", ["parallel", "chunked"])
def test_rows_of_several_pieces_with_steps_of_every_size(form):
    mixer = randomised(S4D.Spec(waves=8, frequencies="inverse").build(WIDTH))
    with torch.no_grad():
        mixer.step_log.copy_(torch.tensor([1e-3, 0.1, 5.0, 1e3]).log())
    by_step = lambda mixer, x, before: mixer.compute("step", x, None, before)  # noqa: E731
    for length in (2 * linear_system.PIECE, 2 * linear_system.PIECE + 3):
        assert wrong(mixer, form, by_step, *inputs(mixer, WIDTH, length), 1e-9) == {}
    mixer = mixer.float()
    assert wrong(mixer, form, by_step, *inputs(mixer, WIDTH, 150), 1e-4) == {}


def test_a_step_is_the_solution_of_the_differential_equation_for_a_constant_input():
    """``h' = a h + u`` as one matrix, whose exponential scipy computes."""
    mixer = randomised(S4D.Spec(waves=2).build(1))
    system, h = mixer.system(torch.float64), torch.randn(1, 1, 4, dtype=torch.float64)
    state = torch.view_as_complex(system.advance(h, torch.tensor([[0.7]], dtype=torch.float64)).detach().view(2, 2))
    dt = float(mixer.step_log.detach().exp())
    for wave in range(2):
        a = complex(-float(mixer.fading_log.detach()[0, wave].exp()), float(mixer.frequency.detach()[0, wave]))
        moved = scipy.linalg.expm(dt * torch.tensor([[a, 1.0], [0, 0]], dtype=torch.complex128).numpy())
        expected = moved[0, 0] * complex(*h[0, 0, 2 * wave : 2 * wave + 2].tolist()) + moved[0, 1] * 0.7
        assert abs(complex(state[wave]) - expected) < 1e-12


def test_new_waves_are_the_papers():
    for frequencies, expected in (
        ("linear", [math.pi * n for n in range(4)]),
        ("inverse", [8 / math.pi * (8 / (2 * n + 1) - 1) for n in range(4)]),
    ):
        model = torch.nn.Sequential(S4D.Spec(waves=4, frequencies=frequencies).build(512))
        initialise(model, depth=1, seed=3)
        a = model[0].system(torch.float64).a / model[0].step_log.detach().double().exp()[:, None]
        assert torch.allclose(a.real, torch.tensor(-0.5, dtype=torch.float64))
        assert torch.allclose(a.imag, torch.tensor(expected, dtype=torch.float64).expand(512, 4), rtol=1e-5)
        dt = model[0].step_log.detach().exp()
        assert 0.001 <= float(dt.min()) < 0.0012
        assert 0.085 < float(dt.max()) <= 0.1001
        assert abs(float(model[0].read.detach().square().sum() / 2048) - 1) < 0.1
    with pytest.raises(UsageError, match="no frequencies 'square'"):
        S4D.Spec(frequencies="square").build(WIDTH)


def test_a_session_needs_no_more_memory_the_longer_it_is():
    model = tiny("s4d")
    sizes = [model.start(random_ids(2, length), 48)[1].bytes() for length in (1, 5, 40)]
    assert len(set(sizes)) == 1
