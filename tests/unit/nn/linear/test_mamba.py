"""Mamba's mixer: every form equals the paper's equations, channel by channel; its state has one size."""

import pytest
import torch

from mixer_forms import inputs, randomised, wrong
from orrery.families import load_family
from orrery.laws.models import random_ids, tiny
from orrery.models.initialise import initialise
from orrery.nn.linear import scan
from orrery.nn.linear.mamba import Mamba
from orrery.nn.norms import RMSNorm

WIDTH = 6
PLAIN = Mamba.Spec(hidden=5, rank=2, state=3)
NORMED = Mamba.Spec(hidden=5, rank=2, state=3, length=3, bias=True, norm=RMSNorm.Spec(eps=0.1), activation="gelu")


def by_the_paper(mixer, u, before):
    """Gu and Dao 2023, algorithm 2, one token, one channel after the other."""
    seen, h = before
    p = dict(mixer.named_parameters())
    said = []
    for t in range(u.shape[1]):
        x, gate = (u[:, t] @ p[f"{name}.weight"].T + p.get(f"{name}.bias", 0) for name in ("x", "gate"))
        seen = torch.cat([seen, x[:, None]], 1)
        x = torch.einsum("bwd,dw->bd", seen, p["convolution.weight"][:, 0]) + p["convolution.bias"]
        x, seen = mixer.activation(x), seen[:, 1:]
        low, b, c = (x @ p[f"{name}.weight"].T for name in ("step_down", "write", "read"))
        if "step_norm.weight" in p:
            low, b, c = (
                normed(part, p[f"{name}_norm.weight"])
                for part, name in zip((low, b, c), ("step", "write", "read"), strict=True)
            )
        dt = torch.log1p(torch.exp(low @ p["step_up.weight"].T + p["step_up.bias"]))
        a = -torch.exp(p["a_log"])
        channels = []
        for d in range(x.shape[1]):
            channels.append(torch.exp(dt[:, d, None] * a[d]) * h[:, d] + dt[:, d, None] * b * x[:, d, None])
        h = torch.stack(channels, 1)
        y = torch.stack([(h[:, d] * c).sum(1) + p["skip"][d] * x[:, d] for d in range(x.shape[1])], 1)
        said.append((y * gate * torch.sigmoid(gate)) @ p["out.weight"].T + p.get("out.bias", 0))
    return torch.stack(said, 1), (seen, h)


def normed(x, gain):
    return x / (x.pow(2).mean(-1, keepdim=True) + 0.1).sqrt() * gain


@pytest.mark.parametrize("form", ["step", "parallel", "chunked"])
@pytest.mark.parametrize("length", [1, 3, 4, 9])
@pytest.mark.parametrize("spec", [PLAIN, NORMED], ids=["plain", "normed"])
def test_every_form_is_the_papers(monkeypatch, form, length, spec):
    monkeypatch.setattr(scan.chunked, "__defaults__", (4,))
    mixer = randomised(spec.build(WIDTH))
    assert wrong(mixer, form, by_the_paper, *inputs(mixer, WIDTH, length), 1e-9) == {}
    mixer = mixer.float()
    assert wrong(mixer, form, by_the_paper, *inputs(mixer, WIDTH, length), 1e-4) == {}


def test_a_wrong_form_is_seen(monkeypatch):
    mixer = randomised(PLAIN.build(WIDTH))
    monkeypatch.setattr(scan, "parallel", lambda a, b, h: scan.sequential(a, b, 0 * h))
    wrongs = wrong(mixer, "parallel", by_the_paper, *inputs(mixer, WIDTH, 3), 1e-9)
    assert {"output", "state 1", "gradient of state 1 before", "gradient of a_log"} <= wrongs.keys()


def test_pieces_are_those_of_the_scan_and_many_of_them_are_the_steps():
    mixer = randomised(PLAIN.build(WIDTH))
    x, before = inputs(mixer, WIDTH, 2 * scan.PIECE + 3)
    assert wrong(mixer, "chunked", lambda m, x, s: m.compute("step", x, None, s), x, before, 1e-9) == {}


def test_steps_so_large_that_all_is_forgotten_and_so_small_that_all_is_kept():
    mixer = randomised(PLAIN.build(WIDTH))
    with torch.no_grad():
        mixer.step_up.bias.copy_(torch.tensor([1e4, 80.0, 0.0, -80.0, -1e4]))
    x, before = inputs(mixer, WIDTH, 70)
    for form in ("parallel", "chunked"):
        assert wrong(mixer, form, lambda m, x, s: m.compute("step", x, None, s), x, before, 1e-9) == {}


def test_weights_of_a_new_one_are_drawn_as_in_the_paper():
    rules = load_family("mamba")
    model = rules.spec({**rules.TINY, "hidden_size": 256, "state_size": 16, "time_step_rank": "auto"}).build(0)
    initialise(model, depth=2, seed=3)
    mixer = model.stack.blocks[1].mixer.branch
    assert mixer.step_up.in_features == 16
    assert torch.equal(mixer.a_log.exp().round(), torch.arange(1.0, 17).expand(512, 16))
    assert torch.equal(mixer.skip, torch.ones(512))
    dt = torch.nn.functional.softplus(mixer.step_up.bias.detach())
    assert 0.001 <= float(dt.min()) < 0.0012
    assert 0.085 < float(dt.max()) <= 0.1001
    assert abs(float(dt.log().mean()) - float(torch.tensor(0.01).log())) < 0.15  # evenly on a logarithmic scale
    assert 0.24 < float(mixer.step_up.weight.detach().abs().max()) <= 0.25
    assert abs(float(mixer.out.weight.detach().std()) / (512**-0.5 / 3**0.5 / 2**0.5) - 1) < 0.05


@pytest.mark.parametrize("family", ["mamba", "falcon_mamba"])
def test_a_session_needs_no_more_memory_the_longer_it_is(family):
    model = tiny(family)
    sizes = [model.start(random_ids(2, length), 48)[1].bytes() for length in (1, 5, 40)]
    assert len(set(sizes)) == 1
