"""One call for every assembly: what it reads, which heads it has, what is done with them inside."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from orrery.errors import UsageError
from orrery.families import load_family, names
from orrery.inspection.recorder import Recorder
from orrery.laws.models import random_ids
from orrery.models.model import HIDDEN, Model
from orrery.nn.context import Execution
from orrery.nn.heads import Last, Pooler, SequenceHead, TokenHead
from orrery.nn.inputs import Images
from orrery.nn.spec import from_json, to_json


def built(family, **heads):
    """Return a family's tiny model in float64, with more heads."""
    rules = load_family(family)
    spec = rules.spec(rules.TINY)
    spec = replace(spec, heads={**spec.heads, **heads}) if heads else spec
    torch.manual_seed(0)
    return spec.build().double().eval()


def batch_of(model, rows=2, length=5):
    """Return a batch with what a model reads."""
    fields = {}
    for number, (name, read) in enumerate(model.spec.inputs.items()):
        image = torch.randn(rows, *getattr(read, "shape", ()), dtype=torch.float64)
        fields[name] = image if isinstance(read, Images) else random_ids(rows, length, seed=number)
    return fields


@pytest.mark.parametrize("family", names())
@torch.no_grad()
def test_every_family_answers_the_same_call(family):
    model = built(family)
    assert isinstance(model, Model)
    batch = batch_of(model)
    main = model.spec.head_names[0]
    answers = model(batch)
    assert list(answers) == [main]
    assert torch.equal(answers[main], model.logits(*batch.values()))
    both = model(batch, [main, HIDDEN])
    assert torch.equal(both[main], answers[main])
    torch.testing.assert_close(both[HIDDEN], model.hidden(*batch.values()), rtol=0, atol=0)
    inside = model(batch, {main: lambda head, x_BLD, real_BL: head(x_BLD, real_BL).sum()})
    assert torch.equal(inside[main], answers[main].sum())
    assert set(model.spec.head_names) == set(model.named_heads)


@pytest.mark.parametrize("family", ["llama", "t5", "rnnsearch", "vision_encoder_decoder", "bert", "lstm"])
@torch.no_grad()
def test_a_value_a_reward_and_a_class_beside_the_main_head(family):
    value = TokenHead.Spec(labels=1)
    reward = SequenceHead.Spec(labels=1, pooler=Pooler.Spec(pool=Last()))
    model, plain = built(family, value=value, reward=reward), built(family)
    batch = batch_of(model)
    main = plain.spec.head_names[0]
    asked = model(batch, ["reward", "value", main])
    assert [tuple(asked[name].shape) for name in ("value", "reward")] == [(2, 5, 1), (2, 1)]
    assert torch.equal(asked["value"], model.heads["value"](model.hidden(*batch.values())))
    for name, weight in plain.named_parameters():
        model.get_parameter(name).copy_(weight)
    assert torch.equal(model(batch)[main], plain(batch)[main])
    assert from_json(to_json(model.spec)) == model.spec
    recorder = Recorder()
    model(batch, ["value", main], Execution(taps=recorder))
    assert torch.equal(recorder.values["value"], model(batch, ["value"])["value"])
    assert torch.equal(recorder.values["logits"], model(batch)[main])


def test_a_gradient_of_one_head_leaves_the_others_alone():
    model = built("llama", value=TokenHead.Spec(labels=1))
    model(batch_of(model), ["value"])["value"].sum().backward()
    assert model.heads["value"].labels.weight.grad is not None
    assert model.head.vocabulary.weight.grad is None


def test_what_padding_is_reaches_a_head():
    model = built("llama", reward=SequenceHead.Spec(labels=1, pooler=Pooler.Spec(pool=Last())))
    ids, real = random_ids(2, 5), torch.tensor([[True] * 5, [True] * 3 + [False] * 2])
    rewards = model({"ids": ids, "real": real}, ["reward"])["reward"]
    torch.testing.assert_close(rewards[1:], model({"ids": ids[1:, :3]}, ["reward"])["reward"], rtol=0, atol=1e-9)


REFUSED = [
    ("llama", lambda ids: ids, "takes a batch"),
    ("llama", lambda ids: {"tokens": ids}, "reads ids, and the batch has tokens"),
    ("llama", lambda ids: {}, "the batch has nothing"),
    ("llama", lambda ids: {"ids": ids, "token_types": ids}, "cannot follow token_types"),
    ("llama", lambda ids: {"ids": ids, "source_real": ids > 0}, "cannot follow source_real"),
    ("t5", lambda ids: {"ids": ids}, "reads source and ids"),
    ("t5", lambda ids: {"source": ids, "ids": ids, "documents": ids}, "cannot follow documents"),
    ("vit", lambda ids: {"ids": ids}, "reads images"),
]


@pytest.mark.parametrize(("family", "wrong", "says"), REFUSED)
def test_a_batch_that_a_model_cannot_read_is_refused(family, wrong, says):
    call = getattr(built(family).forward, "__wrapped__", None)
    model = built(family)
    with pytest.raises(UsageError, match=says):
        call(model, wrong(random_ids(2, 5))) if call else model.forward(wrong(random_ids(2, 5)))


def test_a_head_that_is_not_there_is_refused_with_those_that_are():
    with pytest.raises(UsageError, match="no head value") as caught:
        built("llama")({"ids": random_ids(1, 3)}, ["value"])
    assert "language_model" in caught.value.hint
    with pytest.raises(UsageError, match="reads source and ids, and 1 inputs"):
        built("t5").logits(random_ids(1, 3))


def test_hooks_of_the_model_run_when_an_objective_calls_it():
    from orrery.objectives.causal import CausalLanguageModel

    model, seen = built("llama"), []
    model.register_forward_pre_hook(lambda module, given: seen.append(type(module)))
    ids = random_ids(2, 6)
    CausalLanguageModel().loss(model, {"ids": ids[:, :-1], "targets": ids[:, 1:]})
    assert seen == [type(model)]
    assert isinstance(model, nn.Module)
