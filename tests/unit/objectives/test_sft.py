"""Supervised fine-tuning: the loss of what the assistant wrote, however its conversations lie in rows."""

import pytest
import torch
import torch.nn.functional as F

from objectives_toy import bound, gradient, split_deviation, tiny, tokenizer_of
from orrery.data.batches.padded_rows import PackedRows, padded
from orrery.data.batches.token_windows import IGNORE
from orrery.errors import UsageError
from orrery.laws.accumulation import OneOf, gradients, worst
from orrery.objectives.causal import CausalLanguageModel
from orrery.objectives.sft import SupervisedFineTuning

LENGTHS = (9, 4, 12, 7, 3, 11)


def rows():
    """Return conversations as rows: ids, and targets where the next token is learnt."""
    rng = torch.Generator().manual_seed(1)
    rows_made = []
    for length in LENGTHS:
        ids = torch.randint(3, 60, (length,), generator=rng).tolist()
        learnt = torch.rand(length, generator=rng) < 0.5
        learnt[1] = True
        following = [*ids[1:], IGNORE]
        rows_made.append({"ids": ids, "targets": [t if k else IGNORE for t, k in zip(following, learnt, strict=True)]})
        rows_made[-1]["targets"][-1] = IGNORE
    return rows_made


def model():
    return tiny("llama", tokenizer_of(None))


def packed(length=24, size=None):
    source = PackedRows(rows(), length, 1, 3)
    return PackedRows(rows(), length, size or len(source.packed), 3).batch(0)


def test_the_loss_is_the_mean_over_the_learnt_tokens():
    llama, batch = model(), padded(rows())
    logits_BLV = llama.logits(batch["ids"], real=batch["real"])
    expected = F.cross_entropy(logits_BLV.flatten(0, 1), batch["targets"].flatten(), ignore_index=IGNORE)
    numbers = gradient(llama, bound("sft", llama, None), batch, None)
    expected.backward()
    assert float(numbers["loss"]) == pytest.approx(float(expected.detach()), abs=1e-12)
    for name, parameter in llama.named_parameters():
        assert torch.allclose(parameter.grad, numbers[f"model.{name}"], atol=1e-12)


def test_it_is_causal_on_the_same_targets():
    llama, batch = model(), padded(rows())
    ours = gradient(llama, SupervisedFineTuning(), batch, None)
    theirs = gradient(llama, CausalLanguageModel(), batch, None)
    assert max(float((ours[name] - theirs[name]).abs().max()) for name in theirs) < 1e-12


def test_packed_rows_give_what_padded_ones_do():
    llama, objective = model(), SupervisedFineTuning()
    one, other = gradient(llama, objective, padded(rows()), None), gradient(llama, objective, packed(), None)
    assert max(float((one[name] - other[name]).abs().max()) for name in one) < 1e-11


@pytest.mark.parametrize("batch", [padded(rows()), packed()], ids=["padded", "packed"])
def test_micro_batches_and_ranks_give_the_same_gradient(batch):
    llama, objective = model(), SupervisedFineTuning()
    assert split_deviation(llama, objective, batch) < 1e-9
    shares = [gradients(llama, objective, batch, 1, OneOf(rank, 2)) for rank in range(2)]
    whole = gradients(llama, objective, batch, None)
    assert worst([a + b for a, b in zip(*shares, strict=True)], whole) < 1e-9


def test_a_batch_that_teaches_nothing_is_no_number_that_is_none():
    batch = padded([{"ids": [3, 4, 5], "targets": [IGNORE] * 3}])
    llama = model()
    numbers = gradient(llama, SupervisedFineTuning(), batch, None)
    assert float(numbers["loss"]) == 0
    assert all(not bool(value.any()) for value in numbers.values())


def test_tokens_are_those_that_are_read():
    for batch in (padded(rows()), packed()):
        objective = SupervisedFineTuning()
        assert objective.tokens_of(batch, objective.counts(batch)) == sum(LENGTHS)


def test_what_is_no_decoder_is_refused():
    with pytest.raises(UsageError, match="needs a decoder"):
        bound("sft", tiny("bert", tokenizer_of("bert")), None)


def weighed(scale=1.0):
    """Return rows with a share beside each learnt token, and those of one among them 0 instead of unlearnt."""
    rng = torch.Generator().manual_seed(5)
    shares = [torch.rand(length, generator=rng, dtype=torch.float64).mul(scale).tolist() for length in LENGTHS]
    return [{**row, "weights": share} for row, share in zip(rows(), shares, strict=True)]


@pytest.mark.parametrize("kind", ["padded", "packed"])
@pytest.mark.parametrize("micro", [None, 1, 2])
def test_shares_give_the_weighted_mean_and_its_gradient(kind, micro):
    """Independent: each row alone, torch's own cross entropy a token, and the mean by hand."""
    llama, objective, total, weight = model(), SupervisedFineTuning(), 0.0, 0.0
    for row in weighed():
        logits_LV = llama.logits(torch.tensor([row["ids"]]))[0]
        targets_L, share_L = torch.tensor(row["targets"]), torch.tensor(row["weights"], dtype=torch.float64)
        nats_L = F.cross_entropy(logits_LV, targets_L, ignore_index=IGNORE, reduction="none")
        total, weight = total + (nats_L * share_L).sum(), weight + share_L[targets_L != IGNORE].sum()
    expected = total / weight
    expected.backward()
    wanted = [parameter.grad.clone() for parameter in llama.parameters()]
    source = PackedRows(weighed(), 24, 1, 3)
    raw = padded(weighed()) if kind == "padded" else PackedRows(weighed(), 24, len(source.packed), 3).batch(0)
    batch = objective.prepare(raw, torch.Generator())
    counts = objective.counts(batch)
    found = objective.loss(llama, batch)["next_token"].sum / counts["next_token"]
    assert float(found.detach()) == pytest.approx(float(expected.detach()), abs=1e-12)
    assert worst(gradients(llama, objective, batch, micro), wanted) < 1e-9
    shares = [gradients(llama, objective, batch, micro, OneOf(rank, 2)) for rank in range(2)]
    assert worst([a + b for a, b in zip(*shares, strict=True)], wanted) < 1e-9


@pytest.mark.parametrize("scale", [0.5, 1e-9])
def test_one_factor_for_all_shares_changes_nothing(scale):
    llama, objective = model(), SupervisedFineTuning()
    one, other = (objective.prepare(padded(weighed(by)), torch.Generator()) for by in (1.0, scale))
    assert worst(gradients(llama, objective, one, None), gradients(llama, objective, other, None)) < 1e-9


def test_a_batch_whose_shares_teach_nothing_stays():
    batch = padded([{"ids": [3, 4], "targets": [IGNORE] * 2, "weights": [0.0, 0.0]}])
    assert SupervisedFineTuning().prepare(batch, torch.Generator()) is batch
