"""Mamba-2's mixer: every form equals the paper's recurrence, head by head; its state has one size."""

from dataclasses import replace

import pytest
import torch

from mixer_forms import inputs, randomised, wrong
from orrery.errors import ModelFileError, UsageError
from orrery.families import load_family
from orrery.laws.models import random_ids, tiny
from orrery.models.initialise import initialise
from orrery.nn.linear.gating import GateAlone, GateThenNorm, NormThenGate
from orrery.nn.linear.mamba2 import BoundedSteps, Mamba2, Projections
from orrery.nn.residual import Scale
from orrery.nn.spec import from_json, to_json

WIDTH = 6
GROUPED = Mamba2.Spec(
    heads=4,
    head_width=2,
    state=3,
    groups=2,
    projections=Projections(bias=True, out_bias=True),
    gating=GateThenNorm(eps=0.1),
)
TIMES = Projections(
    bias=True,
    **{
        name: Scale.Spec(factor=0.5 + 0.25 * place)
        for place, name in enumerate(("gate", "x", "write", "read", "step_size"))
    },
)
OTHER_ORDER = replace(GROUPED, gating=NormThenGate(eps=0.1), projections=TIMES)
NO_NORM = replace(GROUPED, gating=GateAlone(), projections=Projections(out_bias=True))
BOUNDED = Mamba2.Spec(heads=2, head_width=3, state=4, length=3, steps=BoundedSteps(least=0.6, most=0.9))
CASES = {"grouped": GROUPED, "bounded": BOUNDED, "norm first": OTHER_ORDER, "no norm": NO_NORM}


def by_the_paper(mixer, u, before):
    """Dao and Gu 2024, equation 1 with a scalar A in each head, one token and one head after the other."""
    memory, seen = before
    p, (heads, state, width) = dict(mixer.named_parameters()), mixer.shape
    said, groups = [], mixer.groups
    for t in range(u.shape[1]):
        through = lambda name, t=t: (  # noqa: E731
            getattr(mixer.behind[name], "factor", 1.0) * (u[:, t] @ p[f"{name}.weight"].T + p.get(f"{name}.bias", 0))
        )
        seen = torch.cat([seen, torch.cat([through("x"), through("write"), through("read")], 1)[:, None]], 1)
        mixed = torch.einsum("bwd,dw->bd", seen, p["convolution.weight"][:, 0]) + p["convolution.bias"]
        mixed, seen = mixed * torch.sigmoid(mixed), seen[:, 1:]
        x, b, c = mixed.split([heads * width, groups * state, groups * state], 1)
        dt = torch.log1p(torch.exp(through("step_size") + p["step_bias"])).clamp(mixer.bounds.least, mixer.bounds.most)
        gate, memories, read = through("gate"), [], []
        for h in range(heads):
            own, group = x[:, h * width : (h + 1) * width], h * groups // heads
            b_h, c_h = (part[:, group * state : (group + 1) * state] for part in (b, c))
            decay = torch.exp(-torch.exp(p["a_log"][h]) * dt[:, h])[:, None, None]
            memories.append(decay * memory[:, h] + b_h[:, :, None] * (dt[:, h, None] * own)[:, None])
            read.append(torch.einsum("bc,bce->be", c_h, memories[-1]) + p["skip"][h] * own)
        memory = torch.stack(memories, 1)
        passed = gated_and_normed(mixer, torch.cat(read, 1), gate * torch.sigmoid(gate), p.get("norm"))
        said.append(passed @ p["out.weight"].T + p.get("out.bias", 0))
    return torch.stack(said, 1), (memory, seen)


def gated_and_normed(mixer, y, gate, gain):
    """Return gate and norm in the order that a mixer has."""

    def norm(x):
        parts = x.chunk(mixer.groups, 1)
        return (
            torch.cat([part / (part.pow(2).mean(1, keepdim=True) + mixer.gating.eps).sqrt() for part in parts], 1)
            * gain
        )

    if isinstance(mixer.gating, GateAlone):
        return y * gate
    return norm(y) * gate if isinstance(mixer.gating, NormThenGate) else norm(y * gate)


@pytest.mark.parametrize("form", ["step", "parallel", "chunked"])
@pytest.mark.parametrize("length", [1, 3, 4, 9])
@pytest.mark.parametrize("spec", CASES.values(), ids=CASES)
def test_every_form_is_the_papers(form, length, spec):
    mixer = randomised(spec.build(WIDTH))
    mixer.size = 4
    assert wrong(mixer, form, by_the_paper, *inputs(mixer, WIDTH, length), 1e-9) == {}
    mixer = mixer.float()
    assert wrong(mixer, form, by_the_paper, *inputs(mixer, WIDTH, length), 1e-4) == {}


def test_a_wrong_group_is_seen(monkeypatch):
    mixer = randomised(GROUPED.build(WIDTH))
    monkeypatch.setattr(Mamba2, "_by_head", lambda self, x: x.unflatten(-1, (2, -1)).repeat(1, 1, 2, 1))
    wrongs = wrong(mixer, "chunked", by_the_paper, *inputs(mixer, WIDTH, 3), 1e-9)
    assert {"output", "state 0", "gradient of write.weight", "gradient of read.weight"} <= wrongs.keys()


def test_weights_of_a_new_one_are_drawn_as_in_the_papers_code():
    rules = load_family("mamba2")
    model = rules.spec({**rules.TINY, "hidden_size": 256, "num_heads": 128, "head_dim": 4}).build(0)
    initialise(model, depth=2, seed=3)
    mixer = model.stack.blocks[1].mixer.branch
    a, dt = mixer.a_log.detach().exp(), torch.nn.functional.softplus(mixer.step_bias.detach())
    assert 1 <= float(a.min()) < 1.5
    assert 15.5 < float(a.max()) <= 16
    assert 0.001 <= float(dt.min()) < 0.0012
    assert 0.085 < float(dt.max()) <= 0.1001
    assert torch.equal(mixer.skip, torch.ones(128))


def test_heads_that_cannot_be_grouped_and_bounds_that_bound_nothing_are_refused():
    with pytest.raises(UsageError, match="4 heads in 3 groups"):
        Mamba2.Spec(heads=4, head_width=2, state=3, groups=3).build(WIDTH)
    rules = load_family("mamba2")
    for key, value in (("time_step_limit", [0.9, 0.6]), ("time_step_limit", ["a", 1]), ("num_heads", 6)):
        with pytest.raises(ModelFileError, match=key):
            rules.spec({**rules.TINY, key: value})


def test_a_session_needs_no_more_memory_the_longer_it_is():
    model = tiny("mamba2")
    sizes = [model.start(random_ids(2, length), 48)[1].bytes() for length in (1, 5, 40)]
    assert len(set(sizes)) == 1


def test_a_mixer_that_an_earlier_version_wrote_is_read():
    now = to_json(replace(GROUPED, projections=Projections(bias=True, out_bias=True)))
    old = {key: value for key, value in now.items() if key not in ("projections", "gating")}
    assert from_json({**old, "bias": True, "eps": 0.1}) == GROUPED
    assert from_json(now) == GROUPED
