import pytest
import torch
import torch.nn.functional as F

from orrery.errors import MachineError
from orrery.training import precision
from orrery.training.precision import (
    OneDnnLinear,
    OneDnnLinears,
    Precision,
    Processor,
    choose_precision,
    resumed_precision,
)

AMD = Processor("AuthenticAMD", frozenset({"avx512f", "avx512_bf16"}))
OLD_AMD = Processor("AuthenticAMD", frozenset({"avx512f"}))
AMX = Processor("GenuineIntel", frozenset({"avx512f", "avx512_bf16", "amx_bf16", "amx_tile"}))
PLAIN = Processor("", frozenset())


@pytest.mark.parametrize(
    ("requested", "processor", "chosen"),
    [
        ("float32", AMX, ("float32", "plain")),
        ("float32", AMD, ("float32", "onednn")),
        ("auto", OLD_AMD, ("float32", "onednn")),
        ("auto", PLAIN, ("float32", "plain")),
        ("auto", AMX, ("bfloat16", "autocast")),
        ("auto", AMD, ("bfloat16", "autocast")),
        ("bfloat16", PLAIN, ("bfloat16", "autocast")),
    ],
)
def test_features_choose_the_path(requested: str, processor: Processor, chosen: tuple[str, str]) -> None:
    precision = choose_precision(requested, "cpu", processor, threads=1)
    assert (precision.dtype, precision.path) == chosen


def test_a_path_that_computes_something_else_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precision, "product", lambda x, w, b: F.linear(x.bfloat16(), w.bfloat16()).float())
    with pytest.raises(MachineError, match="onednn path"):
        choose_precision("float32", "cpu", AMD, threads=1)


def test_resume_follows_the_run_or_refuses() -> None:
    chosen = Precision("float32", "onednn", "cpu", 1)
    assert resumed_precision(chosen.state(), "cpu") == chosen
    with pytest.raises(MachineError, match="started on cpu"):
        resumed_precision(chosen.state(), "cuda")


@pytest.mark.parametrize("shape", [(5, 7), (2, 3, 7)])
@pytest.mark.parametrize("biased", [True, False])
def test_onednn_linear_and_its_gradients_equal_the_definition(shape: tuple[int, ...], biased: bool) -> None:
    torch.manual_seed(0)
    x, weight, bias = torch.randn(shape), torch.randn(4, 7), torch.randn(4) if biased else None
    upstream = torch.randn(*shape[:-1], 4)
    inputs = [tensor.requires_grad_() for tensor in (x, weight, bias) if tensor is not None]
    exact = [tensor.detach().double().requires_grad_() for tensor in inputs]
    result = OneDnnLinear.apply(x, weight, bias)
    expected = F.linear(*exact)
    torch.testing.assert_close(result.double(), expected, rtol=0, atol=1e-5)
    gradients = torch.autograd.grad(result, inputs, upstream)
    for ours, theirs in zip(gradients, torch.autograd.grad(expected, exact, upstream.double()), strict=True):
        torch.testing.assert_close(ours.double(), theirs, rtol=0, atol=1e-5)


def test_every_float32_linear_goes_through_onednn_inside_its_context() -> None:
    layer, x = torch.nn.Linear(7, 4), torch.randn(2, 7)
    with OneDnnLinears():
        out, wide = layer(x), layer.double()(x.double())
    assert type(out.grad_fn).__name__ == "OneDnnLinearBackward"
    assert type(wide.grad_fn).__name__ == "AddmmBackward0"


@pytest.mark.parametrize("shape", [(0, 4), (2, 0, 4)])
def test_no_rows_are_torchs_own(shape: tuple[int, ...]) -> None:
    """A batch in which no token is masked gives the head no row, which oneDNN's operator refuses."""
    x = torch.randn(shape, requires_grad=True)
    linear = torch.nn.Linear(shape[-1], 5)
    with OneDnnLinears():
        out = linear(x)
    out.sum().backward()
    assert out.shape == (*shape[:-1], 5)
    assert x.grad is not None
