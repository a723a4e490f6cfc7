"""Linear layers under autocast on processors with AMX: their gradients are those of torch, and not rounded."""

import copy
import pickle

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from orrery.families import names
from orrery.kernels import bfloat16_linear
from orrery.kernels.bfloat16_linear import AmxLinear, Bfloat16Linear, gemm, linear, take_fast_products
from orrery.kernels.processor import Processor
from orrery.nn.joined_linear import is_plain, join_layers
from parted import built, learned, without_dropout

AMX = Processor("GenuineIntel", frozenset({"avx512f", "amx_bf16"}))
LINES = [(2**-8) * 1.5, 1e-5]
"""Bounds by the largest number: of what is rounded to bfloat16, and of a sum in float32."""


@pytest.fixture(autouse=True)
def of_any_size(monkeypatch):
    monkeypatch.setattr(bfloat16_linear, "LEAST", 0)


def in_bfloat16():
    return torch.autocast("cpu", torch.bfloat16)


def given(*shape, outputs=5, bias=True):
    torch.manual_seed(0)
    x, weight = torch.randn(*shape, requires_grad=True), torch.randn(outputs, shape[-1], requires_grad=True)
    return x, weight, torch.randn(outputs, requires_grad=True) if bias else None


def gradients(function, x, weight, bias, upstream=None):
    with in_bfloat16():
        y = function(x, weight, bias)
    upstream = torch.randn(y.shape, generator=torch.Generator().manual_seed(1)) if upstream is None else upstream
    wanted = [each for each in (x, weight, bias) if each is not None and each.requires_grad]
    return y, upstream, torch.autograd.grad(y, wanted, upstream.to(y.dtype))


def close(found, expected, bound):
    found, expected = found.detach().double(), expected.detach().double()
    return float((found - expected).abs().max() / expected.abs().max()) <= bound


@pytest.mark.parametrize("shape", [(7, 3), (2, 9, 4), (2, 3, 5, 8), (1, 1, 6), (300, 64)])
@pytest.mark.parametrize("bias", [True, False])
def test_the_product_and_its_gradients_are_those_of_the_rounded_factors(shape, bias):
    x, weight, b = given(*shape, bias=bias)
    y, upstream, found = gradients(linear, x, weight, b)
    rounded = [each.detach().bfloat16().double() for each in (x, weight, *([b] if bias else []), upstream)]
    rows, out = rounded[0].flatten(0, -2), rounded[-1].flatten(0, -2)
    assert y.dtype == torch.bfloat16
    assert y.shape == upstream.shape
    assert close(y.flatten(0, -2), rows @ rounded[1].T + (rounded[2] if bias else 0), LINES[0])
    assert close(found[0].flatten(0, -2), out @ rounded[1], LINES[0])
    assert [each.dtype for each in found] == [torch.float32] * len(found)
    assert close(found[1], out.T @ rows, LINES[1])
    assert not bias or close(found[2], out.sum(0), LINES[1])


def test_torch_rounds_what_is_left_unrounded_here():
    """Both are right; ours is the nearer one, by far."""
    x, weight, bias = given(300, 64)
    exact = None
    for function in (linear, F.linear):
        _, upstream, found = gradients(function, x, weight, bias)
        exact = upstream.bfloat16().double().T @ x.detach().bfloat16().double()
        errors = float((found[1].double() - exact).abs().max() / exact.abs().max())
        assert errors < 1e-6 if function is linear else 1e-4 < errors < LINES[0]


def test_factors_that_lie_turned_or_spread_in_memory():
    x, weight, bias = given(6, 8)
    turned = torch.randn(8, 6).t().requires_grad_()
    _, upstream, found = gradients(linear, turned, weight, bias, torch.ones(1).expand(6, 5))
    again = gradients(linear, turned.detach().contiguous().requires_grad_(), weight, bias, upstream.contiguous())[2]
    assert all(torch.equal(one, other) for one, other in zip(found, again, strict=True))
    assert x.shape == turned.shape


def test_another_default_dtype_and_a_single_row_without_a_dimension():
    torch.set_default_dtype(torch.float64)
    try:
        gemm.cache_clear()
        assert gemm() is not None
        x, weight, bias = (each.detach().float().requires_grad_() for each in given(6, 8))
        _, upstream, found = gradients(linear, x, weight, bias)
    finally:
        torch.set_default_dtype(torch.float32)
    rows, out = x.detach().bfloat16().double(), upstream.bfloat16().double()
    assert close(found[1], out.T @ rows, LINES[1])
    with in_bfloat16():
        assert torch.equal(linear(x[0], weight, bias), F.linear(x[0], weight, bias))


def test_only_what_learns_gets_a_gradient():
    x, weight, bias = given(6, 8)
    for rest in ([x], [weight], [bias], [x, bias], [weight, bias]):
        for each in (x, weight, bias):
            each.requires_grad_(all(each is not one for one in rest))
        _, _, found = gradients(linear, x, weight, bias)
        expected = gradients(F.linear, x, weight, bias)[2]
        assert len(found) == 3 - len(rest)
        assert all(close(one, other, LINES[0]) for one, other in zip(found, expected, strict=True))


def test_gradients_of_gradients_are_refused():
    x, weight, bias = given(6, 8)
    with in_bfloat16():
        y = linear(x, weight, bias)
    (of_x,) = torch.autograd.grad(y.float().square().sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        of_x.sum().backward()


def test_elsewhere_it_is_torch(monkeypatch):
    def fail(*args):
        raise AssertionError

    monkeypatch.setattr(bfloat16_linear.Bfloat16Linear, "apply", fail)
    x, weight, bias = given(6, 8)
    assert torch.equal(linear(x, weight, bias), F.linear(x, weight, bias))
    doubles = [each.double() for each in (x, weight, bias)]
    with in_bfloat16():
        assert torch.equal(linear(*doubles), F.linear(*doubles))
    monkeypatch.setattr(bfloat16_linear, "LEAST", 6 * 8 * 5 + 1)
    with in_bfloat16():
        assert torch.equal(linear(x, weight, bias), F.linear(x, weight, bias))


@pytest.mark.parametrize(
    ("device", "processor"),
    [("cuda", AMX), ("cpu", Processor("AuthenticAMD", AMX.flags)), ("cpu", Processor("GenuineIntel", frozenset()))],
)
def test_other_devices_and_processors_keep_torchs_layers(device, processor):
    model = nn.Sequential(nn.Linear(3, 3))
    take_fast_products(model, device, processor)
    assert type(model[0]) is nn.Linear


def test_a_library_that_multiplies_otherwise_is_not_taken(monkeypatch):
    class Other:
        def __call__(self, *args):
            """Such as one whose whole numbers have 64 bits."""

    gemm.cache_clear()
    monkeypatch.setattr(bfloat16_linear, "_found", lambda file: Other())
    try:
        assert gemm() is None
        model = nn.Sequential(nn.Linear(3, 3))
        take_fast_products(model, "cpu", AMX)
        assert type(model[0]) is nn.Linear
    finally:
        gemm.cache_clear()


def learner(family):
    model, batch = built(family)
    without_dropout(model.train())
    return model.float(), {n: each.float() if each.is_floating_point() else each for n, each in batch.items()}


def distances(family):
    """Return how far answers and gradients in bfloat16 are from those in float32: torch's layers, then ours."""
    model, batch = learner(family)
    exact, found = learned(model, batch), []
    for take in (False, True):
        twin = copy.deepcopy(model)
        join_layers(twin, "cpu")
        if take:
            take_fast_products(twin, "cpu", AMX)
        with in_bfloat16():
            numbers = learned(twin, batch)
        assert numbers.keys() == exact.keys()
        found.append(float(sum((numbers[n] - exact[n]).square().sum() for n in exact)) ** 0.5)
    return found


@pytest.mark.parametrize("family", ["gpt2", "llama", "t5"])
def test_a_model_learns_what_it_does_with_torchs_layers(family):
    torchs, ours = distances(family)
    assert ours <= 1.1 * torchs


@pytest.mark.slow
@pytest.mark.parametrize("family", names())
def test_every_family_learns_what_it_does_with_torchs_layers(family):
    torchs, ours = distances(family)
    assert ours <= 1.25 * torchs


def test_a_wrong_gradient_is_seen(monkeypatch):
    inner = bfloat16_linear._summed_product
    monkeypatch.setattr(bfloat16_linear, "_summed_product", lambda upstream, x: inner(upstream.flip(0), x))
    torchs, ours = distances("gpt2")
    assert ours > 2 * torchs


def test_a_pass_without_a_gradient_computes_the_same_to_the_last_bit():
    """PPO asks for it: the ratio of a rollout's first step is 1."""
    model, batch = learner("llama")
    join_layers(model, "cpu")
    take_fast_products(model, "cpu", AMX)
    with in_bfloat16():
        said = model(batch, heads=["language_model"])["language_model"]
        with torch.no_grad():
            assert torch.equal(model(batch, heads=["language_model"])["language_model"], said)


def test_layers_that_rest_and_kinds_of_their_own_stay():
    class Own(nn.Linear):
        pass

    resting = nn.Linear(3, 3).requires_grad_(False)
    model = nn.Sequential(Own(3, 3), resting, nn.Linear(3, 3))
    names_before = list(model.state_dict())
    take_fast_products(model, "cpu", AMX)
    assert [type(each) for each in model] == [Own, nn.Linear, AmxLinear]
    assert list(model.state_dict()) == names_before
    assert [is_plain(each) for each in model] == [False, True, True]


def test_copies_compute_with_their_own_numbers():
    model, batch = learner("gpt2")
    join_layers(model, "cpu")
    take_fast_products(model, "cpu", AMX)
    with in_bfloat16():
        for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
            model.zero_grad()
            expected, found = learned(model, batch), learned(twin, batch)
            assert all(torch.equal(expected[name], found[name]) for name in expected)
            for parameter in twin.parameters():
                parameter.data.zero_()
            assert all(each.abs().max() == 0 for name, each in learned(twin, batch).items() if name.startswith("says"))


def test_the_operations_of_graphs_are_what_the_layer_computes():
    from torch.library import opcheck

    torch.manual_seed(0)
    x, weight, bias, upstream = (torch.randn(*shape).bfloat16() for shape in ((4, 6, 8), (5, 8), (5,), (24, 5)))
    opcheck(torch.ops.orrery.forward_product.default, (x, weight, bias))
    opcheck(torch.ops.orrery.forward_product.default, (x, weight, None))
    opcheck(torch.ops.orrery.summed_product.default, (upstream, x.flatten(0, 1)))
    assert torch.equal(torch.ops.orrery.forward_product(x, weight, bias), Bfloat16Linear.apply(x, weight, bias))
