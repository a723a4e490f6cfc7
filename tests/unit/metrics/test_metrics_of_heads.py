"""Metrics of one head: over batches of any size they come to what the plain scores say of all rows together."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from orrery.data.sources import HeldBack
from orrery.errors import DataError, UsageError
from orrery.families import load_family
from orrery.metrics import METRICS
from orrery.nn.heads import SequenceHead, TokenHead
from orrery.recipes.config import EvaluationSettings
from orrery.schema.registry import settings_of
from orrery.scores import classification, entities, regression
from training_toy import ToySource

NAMES = ("O", "B-PER", "I-PER", "B-LOC", "I-LOC")
HELD_BACK = HeldBack(ToySource(), 1)


class Said(nn.Module):
    """A model whose only head says what the batch holds."""

    def __init__(self, head: str, labels: int, **more) -> None:
        super().__init__()
        self.spec = SimpleNamespace(head_names=(head,), heads={head: SimpleNamespace(labels=labels, **more)})

    def forward(self, batch, heads):
        return {name: answer(lambda x, real: x, batch["said"], batch.get("real")) for name, answer in heads.items()}


def measured(metric, model, *batches):
    metric.bind(model.spec, None)
    sums = [metric.measure(model, batch, {}) for batch in batches]
    assert {each.shape for each in sums} == {sums[0].shape}
    assert all(each.dtype == torch.float64 for each in sums)
    return metric.value(torch.stack(sums).sum(0), HELD_BACK)


def halves(**fields):
    return [{name: value[part] for name, value in fields.items()} for part in (slice(0, 7), slice(7, None))]


@pytest.mark.parametrize("seed", range(5))
def test_one_label_a_row(seed):
    torch.manual_seed(seed)
    logits, labels = torch.randn(20, 4, dtype=torch.float64), torch.randint(4, (20,))
    labels[3] = -100
    kept = labels != -100
    ours, theirs = logits.argmax(-1)[kept].tolist(), labels[kept].tolist()
    batches = halves(said=logits, labels=labels)
    for average in ("macro", "micro", "weighted"):
        value = measured(METRICS.find("f1")(average=average), Said("sequence", 4), *batches)
        assert value == pytest.approx(classification.f1(ours, theirs, average).score, abs=1e-12)
    value = measured(METRICS.find("matthews")(), Said("sequence", 4), *batches)
    assert value == pytest.approx(classification.matthews(ours, theirs).score, abs=1e-12)


def test_many_labels_a_row():
    torch.manual_seed(0)
    logits, labels = torch.randn(20, 4), torch.randint(2, (20, 4))
    sides = [[set(np.flatnonzero(row).tolist()) for row in side.numpy()] for side in (logits > 0, labels)]
    value = measured(METRICS.find("f1")(), Said("sequence", 4), *halves(said=logits, labels=labels.float()))
    assert value == pytest.approx(classification.f1(*sides).score, abs=1e-12)


def test_numbers():
    torch.manual_seed(0)
    x, y = torch.randn(20, 1), torch.randn(20)
    value = measured(METRICS.find("pearson")(), Said("sequence", 1), *halves(said=x, labels=y))
    assert value == pytest.approx(regression.pearson(x[:, 0].tolist(), y.tolist()).score, abs=1e-9)
    assert measured(METRICS.find("pearson")(), Said("sequence", 1), {"said": x * 0, "labels": y}) == 0


@pytest.mark.parametrize("scheme", ["conlleval", "IOB2"])
@pytest.mark.parametrize("average", ["micro", "macro"])
def test_entities(scheme, average):
    torch.manual_seed(0)
    targets = torch.randint(5, (20, 6))
    logits = torch.randn(20, 6, 5) + 2 * nn.functional.one_hot(targets, 5)
    targets[torch.rand(20, 6) < 0.2] = -100  # pieces of words, padding
    metric = METRICS.find("entity_f1")(average=average, scheme=scheme)
    value = measured(metric, Said("token", 5, names=NAMES), *halves(said=logits, targets=targets))
    words = [[place for place, tag in enumerate(row) if tag != -100] for row in targets.tolist()]
    sides = [side.tolist() for side in (logits.argmax(-1), targets)]
    tags = [[[NAMES[row[w]] for w in own] for row, own in zip(side, words, strict=True)] for side in sides]
    assert value == pytest.approx(entities.entity_f1(*tags, average, scheme).score, abs=1e-12)
    assert 0 < value < 1


def test_spans_are_found_among_real_tokens():
    said = torch.zeros(4, 5, 2)
    said[:, 1, 0] = said[:, 2, 1] = 1.0
    said[1, 4, 1] = 9.0  # beyond the row's end
    batch = {"said": said, "real": torch.tensor([[True] * 4 + [False]] * 4)}
    batch |= {"starts": torch.tensor([1, 1, 1, -100]), "ends": torch.tensor([2, 2, 3, -100])}
    assert measured(METRICS.find("span_exact")(), Said("span", 2), batch) == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("name", "head"),
    [
        ("f1", "sequence"),
        ("matthews", "sequence"),
        ("entity_f1", "token"),
        ("span_exact", "span"),
        ("pearson", "sequence"),
    ],
)
def test_a_metric_wants_its_head(name, head):
    with pytest.raises(UsageError, match=f"{name}: the model has no head {head}") as error:
        METRICS.find(name)().bind(Said("other", 2).spec, None)
    assert error.value.hint == "it has: other"
    assert METRICS.find(name)().higher_is_better


@pytest.mark.parametrize(
    ("metric", "spec", "says", "hint"),
    [
        ("f1", SimpleNamespace(head_names=(), heads={}), "no head sequence", "it has: none"),
        (
            "f1",
            SimpleNamespace(head_names=("sequence",), heads={"sequence": object()}),
            "f1: the head sequence has no labels",
            "name a head of kind sequence or token",
        ),
        ("entity_f1", Said("token", 5).spec, "0 names for the 5 labels", "give the head `names`"),
        ("entity_f1", Said("token", 2, names=("O", "PER")).spec, "'PER' is no tag of conlleval", ""),
    ],
)
def test_a_head_that_cannot_be_measured(metric, spec, says, hint):
    with pytest.raises(UsageError, match=says) as error:
        METRICS.find(metric)().bind(spec, None)
    assert hint in error.value.hint


def test_tags_are_those_of_the_scheme():
    with pytest.raises(UsageError, match="entity_f1: the head token: 'E-X' is no tag of IOB2"):
        METRICS.find("entity_f1")(scheme="IOB2").bind(Said("token", 2, names=("O", "E-X")).spec, None)


LABELLED = [("f1", "sequence", {}), ("matthews", "sequence", {}), ("entity_f1", "token", {"names": ("O", "B-X")})]


@pytest.mark.parametrize(("metric", "head", "more"), LABELLED)
@pytest.mark.parametrize("label", [-1, 2, 5])
def test_labels_that_the_head_does_not_have(metric, head, more, label):
    """Label 1 is the last of two; -100 is not asked."""
    tokens = head == "token"
    said = torch.zeros(2, 1, 2) if tokens else torch.zeros(2, 2)
    field, shape = ("targets", (2, 1)) if tokens else ("labels", (2,))
    model = Said(head, 2, **more)
    measured(METRICS.find(metric)(), model, {"said": said, field: torch.tensor([1, -100]).view(shape)})
    least, most = sorted((1, label))
    with pytest.raises(DataError, match=f"{metric}: labels from {least} to {most}, the head has 2") as error:
        measured(METRICS.find(metric)(), model, {"said": said, field: torch.tensor([1, label]).view(shape)})
    assert "labels count from 0" in error.value.hint


def test_batches_without_the_field():
    with pytest.raises(UsageError, match="f1: the batches have no labels") as error:
        measured(METRICS.find("f1")(), Said("sequence", 2), {"said": torch.zeros(1, 2)})
    assert error.value.hint == "they have: said"


def test_they_stand_in_recipes():
    names = ["f1", "matthews", "pearson", "entity_f1", "span_exact"]
    section = EvaluationSettings.model_validate({"metrics": [{"kind": name} for name in names]})
    assert [type(METRICS.find(s.kind).of(s)).__name__ for s in section.metrics] == [
        *("F1", "Matthews", "Pearson", "EntityF1", "SpanExact")
    ]


@pytest.mark.parametrize("name", METRICS.names())
def test_a_metric_that_a_recipe_only_names_is_the_one_without_arguments(name):
    metric = METRICS.find(name)
    assert vars(metric.of(settings_of(metric).model_validate({"kind": name}))) == vars(metric())


def test_the_heads_of_a_real_model():
    torch.manual_seed(0)
    config = {"hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 1, "num_attention_heads": 2}
    llama = load_family("llama").spec({**config, "max_position_embeddings": 8, "vocab_size": 11})
    heads = {"sequence": SequenceHead.Spec(labels=4), "span": TokenHead.Spec(labels=2)}
    model = replace(llama, heads=heads).build().eval()
    real = torch.arange(6) < torch.tensor([[6], [4], [3]])
    batch = {"ids": torch.randint(11, (3, 6)), "real": real, "labels": torch.tensor([0, 3, 1])}
    batch |= {"starts": torch.tensor([0, 1, -100]), "ends": torch.tensor([2, 3, -100])}
    with torch.no_grad():
        right = model(batch, ["sequence"])["sequence"].argmax(-1).tolist()
        spans = model(batch, ["span"])["span"].masked_fill(~real[..., None], -1e9).argmax(1)[:2].tolist()
        value = measured(METRICS.find("f1")(average="micro"), model, batch)
        exact = measured(METRICS.find("span_exact")(), model, batch)
    assert value == pytest.approx(classification.f1(right, [0, 3, 1], "micro").score)
    assert exact == np.mean([spans[0] == [0, 2], spans[1] == [1, 3]])
    with pytest.raises(UsageError, match="the head language_model has no labels"):
        METRICS.find("f1")(head="language_model").bind(model.spec, None)
