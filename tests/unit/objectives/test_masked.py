"""Masked language modelling: the corruption as a distribution, the loss beside transformers'."""

import math

import pytest
import torch
from transformers import BertConfig, BertForMaskedLM

from objectives_toy import bound, generator, split_deviation, text_rows, tiny, tokenizer_of
from orrery.checkpoints.rules import to_theirs
from orrery.errors import UsageError
from orrery.families import load_family, rules_of
from orrery.text.word_starts import word_starts
from orrery.training.contract import finished_batch

BERT = tokenizer_of("bert")


def deviations(share: float, expected: float, of: int) -> float:
    """Return how many standard errors of a binomial share lie between what was found and what is expected."""
    return abs(share - expected) / math.sqrt(expected * (1 - expected) / of)


def corrupted(rows=1000, length=1000, **settings):
    objective = bound("masked", tiny("bert", BERT), BERT, **settings)
    ids = text_rows(BERT, rows, length)
    return ids, objective.prepare({"ids": ids}, generator())


def test_fifteen_of_a_hundred_and_of_these_80_10_10():
    ids, batch = corrupted()
    chosen = batch["targets"] != -100
    number, ordinary = int(chosen.sum()), BERT.size - len(BERT.control)
    assert deviations(number / ids.numel(), 0.15, ids.numel()) < 5
    masked = batch["ids"][chosen] == BERT.special("mask")
    same = batch["ids"][chosen] == ids[chosen]
    assert deviations(float(masked.double().mean()), 0.8, number) < 5
    # One random token in so many is the token itself.
    assert deviations(float(same.double().mean()), 0.1 + 0.1 / ordinary, number) < 5
    assert deviations(float((~masked & ~same).double().mean()), 0.1 - 0.1 / ordinary, number) < 5
    assert torch.equal(batch["targets"][chosen], ids[chosen])
    assert torch.equal(batch["ids"][~chosen], ids[~chosen])
    others = batch["ids"][chosen][~masked & ~same]
    assert len(others.unique()) == ordinary
    assert not {*others.tolist()} & BERT.control


def test_another_probability_is_kept():
    ids, batch = corrupted(probability=0.4)
    assert deviations(float((batch["targets"] != -100).double().mean()), 0.4, ids.numel()) < 5


@pytest.mark.parametrize("whole_words", [False, True])
def test_padding_and_special_tokens_are_never_chosen(whole_words):
    objective = bound("masked", tiny("bert", BERT), BERT, probability=0.9, whole_words=whole_words)
    ids = text_rows(BERT, 50, 40)
    ids[:, 0], ids[:, 20], ids[:, 39] = BERT.special("class"), BERT.special("separator"), BERT.special("end")
    real = torch.arange(40) < torch.arange(50)[:, None]
    for given in ({"real": real}, {"documents": real.long() - 1}, {"targets": torch.where(real, 3, -100)}):
        prepared = objective.prepare({"ids": ids, **given}, generator())
        chosen = prepared["targets"] != -100
        assert not chosen[~real].any()
        assert not chosen[:, [0, 20, 39]].any()
        assert torch.equal(prepared["ids"][~chosen], ids[~chosen])
        assert torch.equal(prepared["real"], real)
        assert chosen.any()


def test_whole_words_are_chosen_whole_and_as_often():
    objective = bound("masked", tiny("bert", BERT), BERT, whole_words=True)
    begins = torch.tensor(word_starts(BERT))
    assert 0.05 < begins.double().mean() < 0.95
    ids = text_rows(BERT, 500, 1000)
    chosen = objective.prepare({"ids": ids}, generator())["targets"] != -100
    goes_on = ~begins[ids[:, 1:]]
    assert torch.equal(chosen[:, 1:][goes_on], chosen[:, :-1][goes_on])
    words = begins[ids]
    words[:, 0] = True
    assert deviations(float(chosen[words].double().mean()), 0.15, int(words.sum())) < 5
    alone = bound("masked", tiny("bert", BERT), BERT).prepare({"ids": ids}, generator())["targets"] != -100
    assert not torch.equal(alone[:, 1:][goes_on], alone[:, :-1][goes_on])


@pytest.mark.parametrize("kind", ["byte_bpe", "wordpiece", "unigram", "word", "character"])
def test_words_begin_where_they_begin_in_the_text(kind):
    tokenizer = tokenizer_of(None, kind)
    starts, text = word_starts(tokenizer), "the cat sat on the mat"
    ids = tokenizer.encode(text)
    if kind == "character":  # the blank begins the word behind it
        assert [starts[id] for id in ids] == [letter == " " for letter in text]
        return
    assert sum(starts[id] for id in ids[1:]) == 5
    begun = [id for place, id in enumerate(ids) if place and starts[id]]
    letters = [tokenizer.token(id).lstrip("\u0120\u2581 ")[:1] for id in begun]
    assert all(letter in ("", first) for letter, first in zip(letters, "csotm", strict=True))


def test_drawn_anew_at_each_step_and_alike_from_the_same_generator():
    objective = bound("masked", tiny("bert", BERT), BERT)
    batch = {"ids": text_rows(BERT, 8, 32)}
    first, again, other = (objective.evaluated().prepare(batch, generator(seed)) for seed in (1, 1, 2))
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not torch.equal(first["ids"], other["ids"])


@pytest.mark.parametrize("family", ["bert", "roberta", "albert", "electra", "distilbert"])
def test_micro_batches_and_padding_change_nothing(family):
    model = tiny(family, BERT)
    objective = bound("masked", model, BERT)
    ids = text_rows(BERT, 4, 12)
    real = torch.arange(12) < torch.tensor([[12], [5], [9], [3]])
    batch = objective.prepare({"ids": ids, "real": real}, generator(4))
    assert split_deviation(model, objective, batch) < 1e-12
    noise = torch.where(real, batch["ids"], text_rows(BERT, 4, 12, seed=8))
    losses = [objective.loss(model.eval(), {**batch, "ids": each})["masked"].sum for each in (batch["ids"], noise)]
    assert abs((losses[0] - losses[1]).item()) < 1e-10


def test_the_loss_is_that_of_transformers():
    model = tiny("bert", BERT).eval()
    rules = load_family("bert")
    config = {**rules.TINY, "vocab_size": BERT.size}
    theirs = BertForMaskedLM(BertConfig(**config)).double().eval()
    weights = to_theirs({name: p.detach() for name, p in model.named_parameters()}, rules_of(rules, config))
    missing = theirs.load_state_dict(weights, strict=False)
    assert not missing.unexpected_keys
    objective = bound("masked", model, BERT)
    real = torch.arange(20) < torch.tensor([[20], [11], [17]])
    batch = objective.prepare({"ids": text_rows(BERT, 3, 20), "real": real}, generator(2))
    told = theirs(input_ids=batch["ids"], attention_mask=real.long(), labels=batch["targets"])
    term = objective.loss(model, batch)["masked"]
    logits = model.logits(batch["ids"], real=real).log_softmax(-1)
    by_hand = -sum(
        logits[row, place, batch["targets"][row, place]] for row, place in (batch["targets"] != -100).nonzero().tolist()
    )
    assert abs((term.sum - by_hand).item()) < 1e-10
    assert abs((term.sum / term.count - told.loss).item()) < 1e-7
    assert objective.counts(batch) == {"masked": int(term.count)}


def test_what_cannot_learn_this_is_refused():
    with pytest.raises(UsageError, match=r"masked needs an encoder with a head for masked tokens"):
        bound("masked", tiny("gpt2", BERT), BERT)
    with pytest.raises(UsageError, match=r"masked needs an encoder with a head for masked tokens"):
        bound("masked", tiny("bert", BERT, architectures=["BertForSequenceClassification"]), BERT)
    for tokenizer in (None, tokenizer_of(None)):
        with pytest.raises(UsageError, match=r"masked needs a mask token") as error:
            bound("masked", tiny("bert", BERT), tokenizer)
        assert "tokenizer.frame" in error.value.hint


def test_ids_beyond_the_vocabulary_are_refused_before_they_are_looked_up():
    model = tiny("bert", BERT)
    objective = bound("masked", model, BERT)
    with pytest.raises(UsageError, match="the data source has ids"):
        finished_batch(objective, {"ids": torch.full((2, 3), BERT.size)}, generator(), model.spec.inputs)


def test_speeds_count_what_is_read_and_not_what_is_chosen():
    objective = bound("masked", tiny("bert", BERT), BERT)
    ids = text_rows(BERT, 4, 20)
    whole = objective.prepare({"ids": ids}, generator())
    assert objective.tokens_of(whole, objective.counts(whole)) == ids.numel()
    real = torch.arange(20) < torch.tensor([20, 11, 7, 16])[:, None]
    padded = objective.prepare({"ids": ids, "real": real}, generator())
    assert objective.tokens_of(padded, objective.counts(padded)) == int(real.sum())
