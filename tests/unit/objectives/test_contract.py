"""An objective that breaks the contract is refused by its name, with what it did."""

import pytest
import torch

from orrery.errors import UsageError
from orrery.objectives import Objective, Term
from orrery.training.assemble import owned
from orrery.training.distributed import Alone
from orrery.training.precision import Precision
from orrery.training.step import accumulate
from training_toy import ToySource, toy_model


class Broken(Objective):
    needs = ("ids",)

    def __init__(self, terms, counts=("nll",)):
        self.terms, self.names = terms, counts

    def counts(self, batch):
        return dict.fromkeys(self.names, 3)

    def loss(self, model, batch):
        return self.terms(model.logits(batch["ids"]))

    def modules(self, model):
        return {"reference": "a name"}


@pytest.mark.parametrize(
    ("terms", "counts", "says"),
    [
        (lambda x: x.sum(), ("nll",), "something other than a Term"),
        (lambda x: {"nll": x.sum()}, ("nll",), "something other than a Term"),
        (lambda x: {"nll": Term(x.sum(), 3)}, ("loss",), "returns the term nll, and counts.. counts loss"),
        (lambda x: {"nll": Term(x.sum(), 3)}, (), "returns the term nll, and counts.. counts nothing"),
        (lambda x: {"nll": Term(x, 3)}, ("nll",), "the sum of the term nll is not one number"),
        (lambda x: {"nll": Term(x.sum().item(), 3)}, ("nll",), "the sum of the term nll is not one number"),
        (lambda x: {"nll": Term(x.detach().sum(), 3)}, ("nll",), "nothing in its loss has a gradient"),
        (lambda x: {}, (), "nothing in its loss has a gradient"),
    ],
)
def test_terms_that_are_no_sums_are_refused(terms, counts, says):
    how = {"micro_batch": None, "seed": (0, 0), "ranks": Alone(), "precision": Precision("float32", "plain", "cpu", 1)}
    with pytest.raises(UsageError, match=f"the objective Broken: .*{says}"):
        accumulate(toy_model(), Broken(terms, counts), ToySource(rows=2).batch(0), **how)


def test_what_is_no_module_is_refused():
    with pytest.raises(UsageError, match="returns 'reference', which is no module"):
        owned(Broken(lambda x: {}), torch.nn.Linear(2, 2), seed=0)
