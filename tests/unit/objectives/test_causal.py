import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from orrery.nn import cross_entropy
from orrery.nn.cross_entropy import head_cross_entropy
from orrery.objectives._next_token import TERM
from orrery.objectives.causal import CausalLanguageModel
from training_toy import ToySource, toy_model


def whole(model: nn.Module, batch: dict, smoothing: float) -> torch.Tensor:
    """The definition: q = (1 - e) one-hot + e / V, loss = - sum over kept targets and v of q log p."""
    log_p = model.head(model.hidden(batch["ids"])).log_softmax(-1)
    keep = batch["targets"] != -100
    one_hot = F.one_hot(batch["targets"].clamp(min=0), log_p.shape[-1]).to(log_p)
    q = (1 - smoothing) * one_hot + smoothing / log_p.shape[-1]
    return -(q * log_p).sum(-1)[keep].sum()


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("at_once", [1, 17 * 5, 2**22])
def test_in_pieces_as_in_whole(smoothing: float, at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cross_entropy, "LOGITS_AT_ONCE", at_once)
    model, batch = toy_model(dropout=0.0).double(), ToySource().batch(0)
    term = CausalLanguageModel(smoothing).loss(model, batch)[TERM]
    expected = whole(model, batch, smoothing)
    parameters = list(model.parameters())
    found_grads = torch.autograd.grad(3 * term.sum, parameters)
    for gradient, wanted in zip(found_grads, torch.autograd.grad(3 * expected, parameters), strict=True):
        torch.testing.assert_close(gradient, wanted, rtol=0, atol=1e-9)
    torch.testing.assert_close(term.sum, expected, rtol=0, atol=1e-9)
    assert int(term.count) == CausalLanguageModel().counts(batch)[TERM] == int((batch["targets"] != -100).sum())


def test_masked_targets_only_give_zero_not_nan() -> None:
    model, batch = toy_model(), ToySource().batch(0)
    batch["targets"][:] = -100
    term = CausalLanguageModel(0.1).loss(model, batch)[TERM]
    term.sum.backward()
    assert term.sum == 0
    assert all(torch.equal(p.grad, torch.zeros_like(p)) for p in model.parameters() if p.grad is not None)


def test_bfloat16_products_reach_every_weight_and_sum_in_float32() -> None:
    model, batch = toy_model(dropout=0.0), ToySource().batch(0)
    with torch.autocast("cpu", torch.bfloat16):
        term = CausalLanguageModel().loss(model, batch)[TERM]
    term.sum.backward()
    assert term.sum.dtype == torch.float32
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in model.parameters())
    torch.testing.assert_close(term.sum, whole(model, batch, 0.0), rtol=0.02, atol=0)


def test_evaluation_needs_no_gradient() -> None:
    model, batch = toy_model(dropout=0.0), ToySource().batch(0)
    with torch.no_grad():
        term = CausalLanguageModel().loss(model, batch)[TERM]
    assert not term.sum.requires_grad
    torch.testing.assert_close(term.sum, whole(model, batch, 0.0))


class LargestLogits(TorchDispatchMode):
    """Records the rows of the largest tensor whose last axis is the vocabulary."""

    def __init__(self, vocabulary: int) -> None:
        super().__init__()
        self.vocabulary, self.numbers = vocabulary, 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        if isinstance(result, torch.Tensor) and result.shape[-1:] == (self.vocabulary,):
            self.numbers = max(self.numbers, result.numel())
        return result


def test_logits_of_a_large_vocabulary_are_never_held_at_once() -> None:
    rows, vocabulary = 512, 50257
    head = nn.Linear(2, vocabulary, bias=False)
    x, targets = torch.randn(rows, 2, requires_grad=True), torch.randint(vocabulary, (rows,))
    with LargestLogits(vocabulary) as largest:
        head_cross_entropy(head, x, targets).backward()
    # Logits, their float32 exponentials and their gradient are alive together: three of these.
    assert 0 < 3 * largest.numbers <= rows * vocabulary / 2
    assert largest.numbers <= cross_entropy.LOGITS_AT_ONCE
