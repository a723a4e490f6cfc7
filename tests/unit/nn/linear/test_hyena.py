"""Hyena: every form equals the convolution that the paper writes down; its kernel has the size that is said."""

import math

import pytest
import torch

from mixer_forms import inputs, randomised, wrong
from orrery.laws.models import random_ids, tiny
from orrery.models.initialise import initialise
from orrery.nn.linear import linear_system
from orrery.nn.linear.hyena import Hyena

WIDTH = 4


def by_the_paper(mixer, x, before):
    """Sum over all pairs of tokens with the kernel, and what the state of before says, wave by wave."""
    p, (h, seen), waves = dict(mixer.named_parameters()), before, mixer.frequency.shape[1]
    given = torch.cat([x @ p[f"{name}.weight"].T + p[f"{name}.bias"] for name in "qkv"], -1)
    seen = torch.cat([seen, given], 1)
    taps, length = p["convolution.weight"][:, 0], x.shape[1]
    mixed = sum(seen[:, o : o + length] * taps[:, o] for o in range(taps.shape[1])) + p["convolution.bias"]
    q, k, v = mixed.chunk(3, -1)
    u, fading, turning = k * v, p["fading_log"].exp(), p["frequency"]
    wave = lambda t: ((-fading * t).exp() * (turning * t).cos(), (-fading * t).exp() * (turning * t).sin())  # noqa: E731
    c, h = (part.unflatten(-1, (waves, 2)).unbind(-1) for part in (p["read"], h))
    real = lambda a, b: a[0] * b[0] - a[1] * b[1]  # noqa: E731
    imaginary = lambda a, b: a[0] * b[1] + a[1] * b[0]  # noqa: E731
    said = []
    for t in range(length):
        turned = wave(t + 1)
        y = 2 * real(c, (real(turned, h), imaginary(turned, h))).sum(-1) + p["skip"] * u[:, t]
        for s in range(t + 1):
            y = y + 2 * real(c, wave(t - s)).sum(-1) * u[:, s]
        said.append((q[:, t] * y) @ p["out.weight"].T + p["out.bias"])
    turned = wave(length)
    after = [real(turned, h), imaginary(turned, h)]
    for s in range(length):
        after = [a + w * u[:, s, :, None] for a, w in zip(after, wave(length - 1 - s), strict=True)]
    return torch.stack(said, 1), (torch.stack(after, -1).flatten(-2), seen[:, length:])


@pytest.mark.parametrize("form", ["step", "parallel", "chunked"])
@pytest.mark.parametrize("length", [1, 3, 4, 9])
def test_every_form_is_the_papers(monkeypatch, form, length):
    monkeypatch.setattr(linear_system, "PIECE", 4)
    mixer = randomised(Hyena.Spec(waves=3).build(WIDTH))
    assert wrong(mixer, form, by_the_paper, *inputs(mixer, WIDTH, length), 1e-9) == {}
    mixer = mixer.float()
    assert wrong(mixer, form, by_the_paper, *inputs(mixer, WIDTH, length), 1e-4) == {}


def test_a_form_that_forgets_the_state_is_seen(monkeypatch):
    mixer = randomised(Hyena.Spec(waves=3).build(WIDTH))
    monkeypatch.setattr(linear_system, "_echoed", lambda system, states, u: torch.zeros_like(u))
    wrongs = wrong(mixer, "chunked", by_the_paper, *inputs(mixer, WIDTH, 5), 1e-9)
    assert {"output", "gradient of state 0 before"} <= wrongs.keys()
    assert "state 0" not in wrongs


@pytest.mark.parametrize("form", ["parallel", "chunked"])
def test_rows_of_several_pieces_with_waves_of_every_pace(form):
    mixer = randomised(Hyena.Spec(waves=6).build(WIDTH))
    with torch.no_grad():
        mixer.fading_log.copy_(torch.tensor([-30.0, -7, -3, 0, 3, 7]).expand(4, 6))
    by_step = lambda mixer, x, before: mixer.compute("step", x, None, before)  # noqa: E731
    for length in (2 * linear_system.PIECE, 2 * linear_system.PIECE + 3):
        assert wrong(mixer, form, by_step, *inputs(mixer, WIDTH, length), 1e-9) == {}


def test_a_new_kernel_has_the_size_one_and_all_paces():
    model = torch.nn.Sequential(Hyena.Spec().build(64))
    initialise(model, depth=1, seed=3)
    kernel = model[0].system(torch.float64).kernel(8192).detach()
    assert abs(float(kernel.square().sum(1).mean()) - 1) < 0.15
    fading = model[0].fading_log.detach().exp()
    assert 0.001 <= float(fading.min()) < 0.0011
    assert 0.95 < float(fading.max()) <= 1.0001
    assert 0 <= float(model[0].frequency.detach().min()) < 0.1
    assert math.pi - 0.1 < float(model[0].frequency.detach().max()) <= math.pi


def test_a_session_needs_no_more_memory_the_longer_it_is():
    model = tiny("hyena")
    sizes = [model.start(random_ids(2, length), 48)[1].bytes() for length in (1, 5, 40)]
    assert len(set(sizes)) == 1
