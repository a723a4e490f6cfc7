"""The binary cross entropy of one logit is torch's, and its gradients too; labels that are no shares are refused."""

import pytest
import torch

from objectives_toy import generator
from orrery.errors import DataError, UsageError
from orrery.families import answering, load_family, spec_of
from orrery.objectives.binary import BinaryCrossEntropy

ROWS, LENGTH = 6, 7


def built(family, problem=""):
    rules = load_family(family)
    spec = spec_of(rules, answering(family, {**rules.TINY, "pad_token_id": 0}, "sequence", 1, (), problem))
    torch.manual_seed(3)
    model = spec.build()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return model.double().eval()


def batch_of(labels):
    ids = torch.randint(3, 40, (len(labels), LENGTH), generator=torch.Generator().manual_seed(1))
    real = torch.arange(LENGTH) < torch.arange(2, 2 + len(labels))[:, None]
    return {"ids": ids, "real": real, "labels": torch.tensor(labels)}


@pytest.mark.parametrize("weight", [1.0, 4.0])
@pytest.mark.parametrize("family", ["bert", "llama"])
@pytest.mark.parametrize("labels", [[0.0, 1.0, 1.0, 0.0, 0.0], [0.25, 0.5, 1.0, 0.0, 0.75]])
def test_loss_and_gradients_are_torchs(family, weight, labels):
    model, batch = built(family), batch_of(labels)
    objective = BinaryCrossEntropy(positive_weight=weight)
    objective.bind(model.spec, None)
    (term,) = objective.loss(model, objective.prepare(batch, generator())).values()
    ours = term.sum / objective.counts(batch)["binary"]
    z_B = model(batch, ("sequence",))["sequence"][:, 0]
    theirs = torch.nn.BCEWithLogitsLoss(pos_weight=torch.tensor(weight).double())(z_B, batch["labels"].double())
    assert abs(float(ours.detach() - theirs.detach())) < 1e-12
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    for one, other in zip(
        torch.autograd.grad(ours, parameters, allow_unused=True),
        torch.autograd.grad(theirs, parameters, allow_unused=True),
        strict=True,
    ):
        assert (one is None) == (other is None)
        assert one is None or float((one - other).abs().max()) < 1e-9


def test_held_back_rows_count_alike():
    assert BinaryCrossEntropy(positive_weight=4.0).evaluated().positive_weight == 1.0


@pytest.mark.parametrize("labels", [[0.0, 2.0], [-1.0, 1.0], [0.0, float("nan")], [5.0, 3.0]])
def test_numbers_that_are_no_shares_are_refused(labels):
    with pytest.raises(DataError, match=r"from 0 .* to 1"):
        BinaryCrossEntropy().prepare(batch_of(labels), generator())


def test_a_head_of_numbers_or_of_several_labels_is_refused():
    with pytest.raises(UsageError, match="numbers as they are"):
        BinaryCrossEntropy().bind(built("bert", "regression").spec, None)
    rules = load_family("bert")
    several = spec_of(rules, answering("bert", rules.TINY, "sequence", 3, ("a", "b", "c"), ""))
    with pytest.raises(UsageError, match="no one number"):
        BinaryCrossEntropy().bind(several, None)
