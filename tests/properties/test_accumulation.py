import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from orrery.errors import UsageError
from orrery.models.inputs import Batch
from orrery.objectives import Objective, Term
from orrery.objectives.causal import CausalLanguageModel
from orrery.training.distributed import Alone
from orrery.training.pieces import Passes, passes
from orrery.training.precision import Precision
from orrery.training.step import StepLoss, accumulate
from training_toy import ToySource, toy_model

FLOAT32 = Precision("float32", "plain", "cpu", 1)


class OneOf:
    """One rank's share, without the others: their gradients are added by hand."""

    def __init__(self, bounds: list[int], rank: int) -> None:
        self.rank = self.replica = self.part = rank
        self.replicas = self.parts = self.devices = len(bounds) - 1
        self.bounds = bounds

    def rows(self, count: int) -> range:
        return range(self.bounds[self.rank], self.bounds[self.rank + 1])

    def passes(self, count: int, size: int | None) -> Passes:
        return passes(self.rows(count), size)

    def own(self, batch: Batch) -> Batch:
        return batch

    def sum(self, values: torch.Tensor) -> torch.Tensor:
        return values

    def sum_gradients(self, parameters: object) -> None:
        pass

    def any(self, flag: bool) -> bool:
        return flag

    def told(self, text: str) -> str:
        return text


def gradient(model: nn.Module, batch: Batch, micro_batch: int | None, bounds: list[int]) -> tuple[list, float]:
    """Return the gradients and the loss, summed over the ranks between ``bounds``."""
    model.zero_grad()
    loss = 0.0
    for rank in range(len(bounds) - 1):
        ranks = Alone() if len(bounds) == 2 else OneOf(bounds, rank)
        loss += run(model, batch, micro_batch, ranks, CausalLanguageModel(0.1)).loss
    return [parameter.grad.clone() for parameter in model.parameters()], loss


def run(model: nn.Module, batch: Batch, micro_batch: int | None, ranks: object, objective: object) -> StepLoss:
    how = {"micro_batch": micro_batch, "seed": (0, 0), "ranks": ranks, "precision": FLOAT32}
    return accumulate(model, objective, batch, **how)


@pytest.mark.parametrize(("dtype", "bound"), [(torch.float64, 1e-9), (torch.float32, 1e-6)])
@settings(deadline=None)
@given(data=st.data())
def test_any_split_gives_the_same_gradient(data: st.DataObject, dtype: torch.dtype, bound: float) -> None:
    rows = data.draw(st.integers(1, 9))
    batch = ToySource(rows=rows).batch(data.draw(st.integers(0, 99)))
    for row in data.draw(st.sets(st.integers(0, rows - 1))):  # rows without any target, up to all of them
        batch["targets"][row] = -100
    model = toy_model(dropout=0.0).to(dtype)
    whole, loss = gradient(model, batch, None, [0, rows])
    cuts = data.draw(st.lists(st.integers(0, rows), max_size=3).map(sorted))
    split, split_loss = gradient(model, batch, data.draw(st.integers(1, rows)), [0, *cuts, rows])
    scale = max(1.0, *(float(tensor.abs().max()) for tensor in whole))
    assert all(torch.isfinite(tensor).all() for tensor in whole)
    assert max(float((a - b).abs().max()) for a, b in zip(whole, split, strict=True)) <= bound * scale
    assert abs(loss - split_loss) <= bound * max(1.0, abs(loss))


def test_the_law_notices_means_of_means() -> None:
    model, batch = toy_model(dropout=0.0).double(), ToySource().batch(0)
    batch["targets"][:3] = -100
    batch["targets"][0, 0] = 1
    whole, _ = gradient(model, batch, None, [0, 6])
    model.zero_grad()
    for start in (0, 3):
        part = {name: tensor[start : start + 3] for name, tensor in batch.items()}
        term = CausalLanguageModel(0.1).loss(model, part)["next_token"]
        (term.sum / term.count / 2).backward()
    wrong = [parameter.grad for parameter in model.parameters()]
    assert max(float((a - b).abs().max()) for a, b in zip(whole, wrong, strict=True)) > 1e-3


class Contrast(Objective):
    """Ties every pair of rows of a batch together."""

    def prepare(self, batch: Batch, rng: torch.Generator) -> Batch:
        return batch

    def counts(self, batch: Batch) -> dict[str, int]:
        return {"contrast": len(batch["ids"])}

    def loss(self, model: nn.Module, batch: Batch) -> dict[str, Term]:
        x = model.hidden(batch["ids"]).mean(1)
        return {"contrast": Term((x @ x.T).sum(), len(x), coupled=True)}


def test_a_coupled_term_refuses_to_be_split_by_name() -> None:
    model, batch = toy_model(), ToySource().batch(0)
    run(model, batch, None, Alone(), Contrast())
    with pytest.raises(UsageError, match="'contrast'"):
        run(model, batch, 4, Alone(), Contrast())
