"""Every mixer against its paper's equations, written out here token by token: numbers, states, gradients, formats."""

import math

import pytest
import torch
import torch.nn.functional as F

from orrery.errors import UsageError
from orrery.nn.initialisation import Draw
from orrery.nn.linear.gated_delta import Forgetting, GatedDelta, Keeping
from orrery.nn.linear.gated_linear_attention import GatedLinearAttention
from orrery.nn.linear.linear_attention import LinearAttention
from orrery.nn.linear.retention import Retention
from orrery.nn.linear.taylor import Taylor
from orrery.nn.masks import TokenPositions
from orrery.nn.positions.rotary import Rotary
from orrery.nn.positions.scheme import PositionCall
from orrery.nn.segments import PackedSegments

WIDTH = 6
EPS = 1e-2
"""Of the norms: so large that float32 is exact enough where a head says next to nothing."""
SIZES = {"heads": 2, "key_width": 4, "value_width": 8, "size": 4}
SPECS = {
    "linear attention": LinearAttention.Spec(**SIZES),
    "taylor": LinearAttention.Spec(**SIZES, features=Taylor.Spec()),
    "retention": Retention.Spec(**SIZES, eps=EPS),
    "gla": GatedLinearAttention.Spec(**SIZES, eps=EPS, rank=2),
    "gated delta": GatedDelta.Spec(**SIZES, eps=EPS, forget=Forgetting.Spec(heads=2), places=3),
    "shared keys": GatedDelta.Spec(
        **{**SIZES, "heads": 4}, eps=EPS, forget=Forgetting.Spec(heads=4), sharing=2, places=3
    ),
    "delta": GatedDelta.Spec(**SIZES, eps=EPS, forget=Keeping.Spec(heads=2), places=3),
}
every_mixer = pytest.mark.parametrize("name", SPECS)


def built(name, seed=0):
    torch.manual_seed(seed)
    mixer = SPECS[name].build(WIDTH).double()
    with torch.no_grad():
        for parameter in mixer.parameters():
            parameter.normal_(std=0.6)
    return mixer


def head_by_head(x, heads=2):
    return x.view(len(x), heads, -1)


def normed(mixer, y, gate):
    """Root mean square of each head, its gain, and the gate."""
    y = y / (y.square().mean(-1, keepdim=True) + EPS).sqrt() * mixer.norm.norm.weight
    return mixer.out(y.reshape(len(y), -1) * F.silu(gate))


def weighted(mixer, x, weight):
    """Attention with other weights than the softmax's, divided by their sum; one row ``[L, D]``."""
    q, k, v = (head_by_head(part(x)) for part in (mixer.q, mixer.k, mixer.v))
    rows = []
    for t in range(len(x)):
        weights = torch.stack([weight(q[t], k[s]) for s in range(t + 1)])
        rows.append((weights[..., None] * v[: t + 1]).sum(0) / (weights.sum(0)[:, None] + 1e-6))
    return mixer.out(torch.stack(rows).flatten(1))


def positive(q, k):
    return ((F.elu(q) + 1) * (F.elu(k) + 1)).sum(-1)


def expanded(q, k):
    product = (q * k).sum(-1) / math.sqrt(q.shape[-1])
    return 1 + product + product**2 / 2


def retained(mixer, x):
    """Rotary positions, and a decay by distance in place of the softmax."""
    places = TokenPositions(torch.arange(len(x))[None])
    rotary = Rotary.Spec(width=4).build(4).bind(PositionCall(places, {}, len(x), x.dtype))
    q, k = (rotary.rotate(head_by_head(part(x)).transpose(0, 1)[None])[0] for part in (mixer.q, mixer.k))
    v = head_by_head(mixer.v(x)).transpose(0, 1)
    gamma = 1 - 2.0 ** (-5 - torch.arange(2, dtype=torch.float64))
    distance = torch.arange(len(x))[:, None] - torch.arange(len(x))
    decay = torch.where(distance >= 0, gamma[:, None, None] ** distance, 0.0)
    y = ((q @ k.mT) / 2 * decay @ v).transpose(0, 1)
    y = (y - y.mean(-1, keepdim=True)) / (y.var(-1, keepdim=True, correction=0) + EPS).sqrt()
    return mixer.out(y.flatten(1) * F.silu(mixer.gate(x)))


def gated(mixer, x):
    q, k, v = (head_by_head(part(x)) for part in (mixer.q, mixer.k, mixer.v))
    kept = torch.sigmoid(head_by_head(mixer.forget(mixer.narrow(x)))) ** (1 / 16)
    state, rows = torch.zeros(2, 4, 8, dtype=x.dtype), []
    for t in range(len(x)):
        state = kept[t, :, :, None] * state + k[t, :, :, None] * v[t, :, None]
        rows.append(torch.einsum("hc,hce->he", q[t] / 2, state))
    return normed(mixer, torch.stack(rows), mixer.gate(x))


def corrected(mixer, x):
    mixed = torch.cat([part(x) for part in (mixer.q, mixer.k, mixer.v)], -1)
    mixed = F.conv1d(F.pad(mixed.mT, (2, 0)), mixer.short.weight, groups=mixed.shape[1]).mT
    number, key_width, width = mixer.shape
    parts = F.silu(mixed).split([part.out_features for part in (mixer.q, mixer.k, mixer.v)], -1)
    q, k, v = (part.view(len(x), -1, size) for part, size in zip(parts, (key_width, key_width, width), strict=True))
    q, k = (part / (part.square().sum(-1, keepdim=True) + 1e-6).sqrt() for part in (q, k))
    q, k = (part[:, [head * part.shape[1] // number for head in range(number)]] for part in (q, k))
    share, kept = torch.sigmoid(mixer.write(x)), torch.exp(mixer.forget(x[None])[0])
    state, rows = torch.zeros(number, 4, 8, dtype=x.dtype), []
    for t in range(len(x)):
        erased = torch.eye(4) - share[t][:, None, None] * k[t, :, :, None] * k[t, :, None]
        state = erased @ (kept[t][:, None, None] * state) + share[t][:, None, None] * k[t, :, :, None] * v[t, :, None]
        rows.append(torch.einsum("hc,hce->he", q[t] / 2, state))
    return normed(mixer, torch.stack(rows), mixer.gate(x))


NAIVE = {
    "linear attention": lambda mixer, x: weighted(mixer, x, positive),
    "taylor": lambda mixer, x: weighted(mixer, x, expanded),
    "retention": retained,
    "gla": gated,
    "gated delta": corrected,
    "shared keys": corrected,
    "delta": corrected,
}


def deviation(numbers, expected):
    pairs = zip(numbers, expected, strict=True)
    return max(float((a - b).abs().max() / b.abs().max().clamp(min=1)) for a, b in pairs)


def with_gradients(mixer, x, run):
    """Outputs, and gradients of the inputs and of every parameter."""
    x = x.to(next(mixer.parameters()).dtype).requires_grad_()
    y = run(x)
    return y.detach(), *torch.autograd.grad(y.pow(2).mean(), [x, *mixer.parameters()])


@every_mixer
@pytest.mark.parametrize("tokens", [1, 3, 4, 11])
def test_every_form_is_the_papers_equation(name, tokens):
    mixer = built(name)
    x = torch.randn(2, tokens, WIDTH, dtype=torch.float64)
    expected = with_gradients(mixer, x, lambda x: torch.stack([NAIVE[name](mixer, row) for row in x]))
    for dtype, bound in ((torch.float64, 1e-9), (torch.float32, 1e-4)):
        mixer.to(dtype)
        for form in ("step", "parallel", "chunked"):
            numbers = with_gradients(mixer, x, lambda x, form=form: mixer.compute(form, x, None, mixer.begin(x))[0])
            assert deviation(numbers, expected) <= bound, (form, dtype)


@every_mixer
def test_the_state_is_wide_and_keeps_its_format_where_all_else_is_narrow(name):
    real = torch.arange(9) < torch.tensor([[9], [5]])
    for autocast in (False, True):
        mixer = built(name).float() if autocast else built(name).bfloat16()
        x = torch.randn(2, 9, WIDTH).to(next(mixer.parameters()).dtype)
        for form in ("step", "parallel", "chunked"):
            for segments in (None, PackedSegments.of(real)):
                before = mixer.begin(x)
                with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
                    y, after = mixer.compute(form, x, segments, before)
                assert after[0].dtype == torch.float32
                assert [part.dtype for part in after] == [part.dtype for part in before]
                assert y.isfinite().all()


@pytest.mark.parametrize("name", ["gla", "gated delta"])
def test_a_gate_that_wipes_the_memory_at_every_token_gives_numbers(name):
    mixer = built(name).float()
    with torch.no_grad():
        {"gla": mixer.forget, "gated delta": mixer.forget}[name].bias.fill_(-320.0 if name == "gla" else 40.0)
    x = torch.randn(1, 40, WIDTH)
    with torch.no_grad():
        expected = mixer.compute("step", x, None, mixer.begin(x))
    for form in ("parallel", "chunked"):
        numbers = with_gradients(mixer, x, lambda x, form=form: mixer.compute(form, x, None, mixer.begin(x))[0])
        assert all(part.isfinite().all() for part in numbers)
        assert deviation(numbers[:1], expected[:1]) < 1e-4


def test_the_delta_rule_replaces_what_a_key_says():
    """With a share of one and nothing forgotten, a key says what was last written to it."""
    from orrery.nn.linear import delta

    k = F.normalize(torch.randn(1, 5, 1, 4, dtype=torch.float64), dim=-1)
    k[:, 4] = k[:, 1]
    v, ones = torch.randn(1, 5, 1, 3, dtype=torch.float64), torch.ones(1, 5, 1, dtype=torch.float64)
    y, _ = delta.chunked(k, k, v, 0 * ones, ones, torch.zeros(1, 1, 4, 3, dtype=torch.float64), size=4)
    assert torch.allclose(y, v)


def test_taylor_features_multiply_to_the_expansion():
    spec = Taylor.Spec()
    q, k = torch.randn(2, 1, 1, 1, 7, dtype=torch.float64)
    features = spec.build(7)
    assert features(q).shape[-1] == spec.out_width(7) == 36
    assert torch.allclose((features(q) * features(k)).sum(-1), expanded(q, k))


def test_keys_that_do_not_pair_cannot_turn():
    with pytest.raises(UsageError, match="3 channels of a key turn"):
        Retention.Spec(heads=2, key_width=3, value_width=4).build(8)


def test_a_new_forget_gate_is_drawn_as_mamba_2_draws_it():
    gate = Forgetting.Spec(heads=4000).build(3)
    with torch.no_grad():
        gate.initialise(Draw(torch.Generator().manual_seed(0), std=0.02, depth=2, tables={}))
    pace, step = gate.pace.detach().exp(), F.softplus(gate.bias.detach())
    assert 1 <= pace.min() < 1.1
    assert 15.9 < pace.max() <= 16.001
    assert abs(float(pace.mean()) - 8.5) < 0.2
    assert 0.000999 < step.min() < 0.0011
    assert 0.09 < step.max() < 0.1001
    assert abs(float(step.log().mean()) - math.log(0.01)) < 0.1
