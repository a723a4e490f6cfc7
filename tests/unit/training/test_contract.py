"""An objective, a source or a metric that breaks its contract is refused by name, with what it did."""

import pytest
import torch

from orrery.errors import UsageError
from orrery.nn.inputs import Tokens
from orrery.objectives import Objective, Term
from orrery.runs.assemble import owned
from orrery.training.contract import checked_sums, checked_value, finished_batch
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


TOKENS = torch.zeros(2, 4, dtype=torch.long)


@pytest.mark.parametrize(
    ("batch", "says"),
    [
        (None, "other than tensors by name"),
        ({"ids": [1, 2]}, "other than tensors by name"),
        ({"text": TOKENS}, "has text, and no ids"),
        ({"ids": TOKENS, "odd": torch.zeros(3)}, r"differs in its rows: ids \[2, 4\], odd \[3\]"),
        ({"ids": TOKENS[:0]}, r"has no ids: its shape is \[0, 4\]"),
        ({"ids": TOKENS[:, :0]}, r"has no ids: its shape is \[2, 0\]"),
        ({"ids": TOKENS, "odd": torch.tensor(3)}, r"differs in its rows: ids \[2, 4\], odd \[\]"),
        ({"ids": torch.tensor(3)}, r"differs in its rows: ids \[\]"),
        ({"ids": TOKENS.float()}, "ids that are no whole numbers"),
        ({"ids": TOKENS + 9}, "ids from 9 to 9"),
        ({"ids": TOKENS - 1}, "ids from -1 to -1"),
    ],
)
def test_a_batch_that_cannot_be_learned_from_is_refused(batch, says):
    with pytest.raises(UsageError, match=f"the data source .*{says}"):
        finished_batch(Broken(lambda x: {}), batch, torch.Generator(), {"ids": Tokens(9)})


class Making(Broken):
    makes = ("source",)

    def prepare(self, batch, rng):
        return self.terms(batch)


@pytest.mark.parametrize(
    ("made", "says"),
    [
        (lambda batch: batch, "a batch of the objective Making has ids, and no source"),
        (lambda batch: {"source": TOKENS}, "a batch of the objective Making has source, and no ids"),
        (lambda batch: {**batch, "source": TOKENS[:1]}, "the objective Making differs in its rows"),
        (lambda batch: {**batch, "source": TOKENS + 9}, "the objective Making has source from 9 to 9"),
    ],
)
def test_what_an_objective_makes_is_held_to_what_the_model_reads(made, says):
    inputs = {"source": Tokens(9), "ids": Tokens(9)}
    with pytest.raises(UsageError, match=says):
        finished_batch(Making(made), {"ids": TOKENS}, torch.Generator(), inputs)
    whole = {"source": TOKENS, "ids": TOKENS}
    assert finished_batch(Making(lambda batch: whole), {"ids": TOKENS}, torch.Generator(), inputs) is whole
    with pytest.raises(UsageError, match="the data source has source, and no ids"):
        finished_batch(Making(made), {"source": TOKENS}, torch.Generator(), inputs)


def test_a_metric_gives_numbers():
    assert checked_sums("own", torch.tensor([1, 2])).dtype == torch.float64
    assert (checked_value("own", torch.tensor(2.5)), checked_value("own", 3)) == (2.5, 3.0)
    for value in ("much", None, torch.zeros(2)):
        with pytest.raises(UsageError, match=r"the metric own: value\(\) returns no number"):
            checked_value("own", value)
    for sums in ([1, 2], torch.tensor(3.0)):
        with pytest.raises(UsageError, match=r"the metric own: measure\(\) returns no tensor of one axis"):
            checked_sums("own", sums)
