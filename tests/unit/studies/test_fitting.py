"""How small models of a study are trained: by what their objective says."""

import pytest
import torch

from orrery.objectives import Objective, Term
from orrery.studies.fitting import fit
from stand_ins import stand_in


@pytest.mark.parametrize("weight", [0.0, 1.0])
def test_a_term_counts_by_its_weight(weight: float) -> None:
    model = torch.nn.Linear(2, 1)
    before = model.weight.detach().clone()

    def loss(model: torch.nn.Module, batch: torch.Tensor) -> dict[str, Term]:
        return {"own": Term(model(batch).square().sum(), 2, weight)}

    objective = stand_in(Objective, prepare=lambda batch, rng: batch, loss=loss)
    losses = fit(model, objective, lambda rng: torch.ones(2, 2), 2, 0.1, 0)
    assert (losses == [0.0, 0.0]) == (weight == 0)
    assert torch.equal(model.weight, before) == (weight == 0)
