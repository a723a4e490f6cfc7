"""Next sentence and sentence order beside masked language modelling: both terms, and transformers' loss."""

import pytest
import torch
from transformers import AlbertConfig, AlbertForPreTraining, BertConfig, BertForPreTraining

from objectives_toy import bound, generator, split_deviation, text_rows, tiny, tokenizer_of
from orrery.checkpoints.rules import to_theirs
from orrery.errors import UsageError
from orrery.families import load_family, rules_of

BERT = tokenizer_of("bert")
CASES = {
    "next_sentence": ("bert", "follows", "BertForPreTraining", BertConfig, BertForPreTraining, "next_sentence_label"),
    "sentence_order": (
        "albert", "in_order", "AlbertForPreTraining", AlbertConfig, AlbertForPreTraining, "sentence_order_label",
    ),
}  # fmt: skip


def batch_of(label):
    real = torch.arange(20) < torch.tensor([[20], [11], [17], [9]])
    token_types = (torch.arange(20) > 6).long().expand(4, -1)
    return {"ids": text_rows(BERT, 4, 20), "real": real, "token_types": token_types, label: torch.tensor([1, 0, 0, 1])}


@pytest.mark.parametrize("name", CASES)
def test_the_loss_is_that_of_transformers(name):
    family, label, architecture, config_class, model_class, theirs_label = CASES[name]
    rules, config = load_family(family), {"vocab_size": BERT.size, "architectures": [architecture]}
    learner = tiny(family, BERT, architectures=[architecture]).eval()
    objective = bound(name, learner, BERT)
    assert objective.heads(learner.spec) == ("masked", "next")
    batch = objective.prepare(batch_of(label), generator(2))
    theirs = model_class(config_class(**{**rules.TINY, **config})).double().eval()
    weights = {n: p.detach() for n, p in learner.named_parameters()}
    theirs.load_state_dict(to_theirs(weights, rules_of(rules, {**rules.TINY, **config})), strict=False)
    told = theirs(
        input_ids=batch["ids"],
        attention_mask=batch["real"].long(),
        token_type_ids=batch["token_types"],
        labels=batch["targets"],
        **{theirs_label: 1 - batch[label]},
    )
    terms = objective.loss(learner, batch)
    loss = sum(term.sum / term.count for term in terms.values())
    assert abs((loss - told.loss).item()) < 1e-7
    assert {n: int(term.count) for n, term in terms.items()} == objective.counts(batch)
    alone = bound("masked", learner, BERT).loss(learner, batch)["masked"].sum
    assert abs((terms["masked"].sum - alone).item()) < 1e-10


@pytest.mark.parametrize("name", CASES)
def test_micro_batches_change_nothing_and_evaluation_draws_alike(name):
    family, label, architecture, *_ = CASES[name]
    learner = tiny(family, BERT, architectures=[architecture])
    objective = bound(name, learner, BERT)
    batch, again = (objective.evaluated().prepare(batch_of(label), generator(2)) for _ in range(2))
    assert all(torch.equal(batch[field], again[field]) for field in batch)
    assert split_deviation(learner, objective, batch) < 1e-12


def test_a_model_without_the_head_is_refused():
    for name in CASES:
        with pytest.raises(UsageError, match=f"{name} needs a head next of two labels") as error:
            bound(name, tiny("bert", BERT), BERT)
        assert "ForPreTraining" in error.value.hint
