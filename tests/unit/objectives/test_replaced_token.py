"""Replaced-token detection: what the generator writes, both terms by hand and beside transformers."""

import math
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from transformers import ElectraConfig, ElectraForPreTraining

from objectives_toy import bound, generator, split_deviation, text_rows, tiny, tokenizer_of
from orrery.checkpoints.rules import to_theirs
from orrery.errors import UsageError
from orrery.families import load_family, rules_of
from orrery.nn.heads import TokenHead
from orrery.objectives.replaced_token import sampled

BERT = tokenizer_of("bert")
DISCRIMINATOR = {"architectures": ["ElectraForPreTraining"]}
THIRD = {"generator": 1 / 3}


def model(**config):
    return tiny("electra", BERT, **DISCRIMINATOR, **config)


def learning(learner, seed=0, **settings):
    objective = bound("replaced_token", learner, BERT, **{**THIRD, **settings})
    torch.manual_seed(seed)
    objective.modules(learner)["generator"].double()
    return objective


def test_every_chosen_token_is_masked_and_the_text_stays():
    ids = text_rows(BERT, 1000, 300)
    prepared = learning(model()).prepare({"ids": ids}, generator())
    chosen = prepared["targets"] != -100
    assert torch.equal(prepared["ids"], ids)
    assert (prepared["masked"][chosen] == BERT.special("mask")).all()
    assert torch.equal(prepared["masked"][~chosen], ids[~chosen])
    assert abs(float(chosen.double().mean()) - 0.15) < 5 * math.sqrt(0.15 * 0.85 / ids.numel())


def test_tokens_are_drawn_from_the_distribution():
    draws = 200_000
    logits = torch.tensor([2.0, 0.0, -1.0, 1.0, -torch.inf], dtype=torch.float64)
    drawn = sampled(logits.expand(draws, -1), torch.rand(draws, generator=generator(), dtype=torch.float64))
    share, expected = drawn.bincount(minlength=5) / draws, logits.softmax(-1)
    assert ((share - expected).abs() <= 5 * (expected * (1 - expected) / draws).sqrt()).all()
    ends = sampled(logits.expand(2, -1), torch.tensor([0.0, 1 - 2**-53], dtype=torch.float64))
    assert ends.tolist() == [0, 3]


def test_the_generator_is_as_narrow_as_asked_and_as_deep():
    learner = model()
    generator_spec = learning(learner).generator.spec
    assert (generator_spec.width, len(generator_spec.stack.blocks)) == (8, len(learner.spec.stack.blocks))
    assert (
        generator_spec.stack.entry_width(generator_spec.width)
        == learner.spec.stack.entry_width(learner.spec.width)
        == 16
    )
    wide = model(embedding_size=24)
    assert learning(wide).generator.spec.stack.entry_width(8) == 24
    for each in (learner, wide):
        ids = text_rows(BERT, 2, 9)
        assert learning(each).generator.logits(ids).shape == (2, 9, BERT.size)
    table = "embed.token.weight"
    first, again, other = (dict(learning(learner, seed).generator.named_parameters())[table] for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def batch_of(objective, learner):
    real = torch.arange(20) < torch.tensor([[20], [11], [17]])
    return objective.prepare({"ids": text_rows(BERT, 3, 20), "real": real}, generator(2))


def test_both_terms_are_what_the_definition_says():
    rules, learner = load_family("electra"), model().eval()
    objective = learning(learner, probability=0.4)
    ids = text_rows(BERT, 3, 20)
    ids[:, ::2] = ids[0, 0]
    with torch.no_grad():  # so that the generator writes this token often, and some chosen tokens stay as they were
        objective.generator.heads["masked"].vocabulary.bias[ids[0, 0]] += 20
    real = torch.arange(20) < torch.tensor([[20], [11], [17]])
    batch = objective.prepare({"ids": ids, "real": real}, generator(2))
    terms = objective.loss(learner, batch)
    chosen, real = batch["targets"] != -100, batch["real"]
    logits = objective.generator.eval().logits(batch["masked"], real=real).log_softmax(-1)
    wanted = -logits[chosen].gather(1, batch["targets"][chosen][:, None]).sum()
    assert abs((terms["generated"].sum - wanted).item()) < 1e-9
    written = batch["ids"].clone()
    written[chosen] = sampled(logits[chosen], batch["uniform"][chosen])
    changed = written != batch["ids"]
    assert 0 < int(changed.sum()) < int(chosen.sum())
    config = {**rules.TINY, **DISCRIMINATOR, "vocab_size": BERT.size}
    theirs = ElectraForPreTraining(ElectraConfig(**config)).double().eval()
    weights = to_theirs({name: p.detach() for name, p in learner.named_parameters()}, rules_of(rules, config))
    assert not theirs.load_state_dict(weights, strict=False).unexpected_keys
    told = theirs(input_ids=written, attention_mask=real.long(), labels=changed.long())
    term = terms["replaced"]
    assert term.weight == 50.0
    assert abs((term.sum / term.count - told.loss).item()) < 1e-7
    by_hand = F.binary_cross_entropy_with_logits(told.logits[real], changed[real].double(), reduction="sum")
    assert abs((term.sum - by_hand).item()) < 1e-6
    assert objective.counts(batch) == {"generated": int(chosen.sum()), "replaced": int(real.sum())}


def test_no_gradient_of_the_model_reaches_the_generator():
    learner = model()
    objective = learning(learner)
    objective.loss(learner, batch_of(objective, learner))["replaced"].sum.backward()
    assert all(parameter.grad is None for parameter in objective.generator.parameters())


def test_micro_batches_change_nothing():
    learner = model()
    objective = bound("replaced_token", learner, BERT, **THIRD)
    batch = batch_of(objective, learner)
    assert split_deviation(learner, objective, batch) < 1e-10


def test_evaluation_draws_alike_and_without_dropout():
    learner = tiny("electra", BERT, **DISCRIMINATOR)
    objective = learning(learner)
    batches = [objective.evaluated().prepare({"ids": text_rows(BERT, 4, 20)}, generator(3)) for _ in range(2)]
    learner.eval()
    with torch.no_grad():
        first, again = (objective.loss(learner, batch) for batch in batches)
    assert not objective.generator.training
    assert all(torch.equal(first[name].sum, again[name].sum) for name in first)


def test_what_cannot_learn_this_is_refused():
    with pytest.raises(UsageError, match="needs an encoder with a head replaced of one label"):
        bound("replaced_token", tiny("bert", BERT), BERT)
    learner = model()
    two = replace(learner.spec, heads={"replaced": TokenHead.Spec(labels=2)}).build()
    with pytest.raises(UsageError, match="needs an encoder with a head replaced of one label"):
        bound("replaced_token", two, BERT)
    with pytest.raises(UsageError, match="no whole number of heads of 8") as error:
        bound("replaced_token", learner, BERT, generator=0.5)
    assert "n / 3" in error.value.hint
    with pytest.raises(UsageError, match="needs a mask token"):
        bound("replaced_token", learner, tokenizer_of(None), **THIRD)
