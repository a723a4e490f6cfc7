"""Which heads a configuration asks for."""

import sys
from types import ModuleType

import pytest

from orrery.errors import ModelFileError, UsageError
from orrery.families import _registry, load_family, names, register
from orrery.nn.heads import LanguageModelHead, SequenceHead, TokenHead


def heads(family, **config):
    rules = load_family(family)
    return rules.spec({**rules.TINY, **config}).heads


@pytest.mark.parametrize(
    ("config", "names"),
    [
        ({}, ["masked"]),
        ({"architectures": None}, ["masked"]),
        ({"architectures": ["BertForMaskedLM"]}, ["masked"]),
        ({"architectures": ["BertModel"]}, ["pooled"]),
        ({"architectures": ["BertForPreTraining"]}, ["masked", "next"]),
        ({"architectures": ["BertForTokenClassification"]}, ["token"]),
    ],
    ids=str,
)
def test_the_architecture_names_the_heads(config, names):
    assert list(heads("bert", **config)) == names


@pytest.mark.parametrize(
    ("config", "labels"),
    [
        ({}, 2),
        ({"num_labels": 5}, 5),
        ({"id2label": {"0": "a", "1": "b", "2": "c"}}, 3),
        ({"id2label": {"0": "a", "1": "b", "2": "c"}, "num_labels": 3}, 3),
    ],
    ids=str,
)
@pytest.mark.parametrize("end", ["Sequence", "Token"])
def test_the_labels_are_those_with_a_name(config, labels, end):
    (head,) = heads("bert", architectures=[f"BertFor{end}Classification"], **config).values()
    assert isinstance(head, SequenceHead.Spec | TokenHead.Spec)
    assert head.labels == labels


def test_the_labels_keep_their_names_in_the_order_of_their_numbers():
    config = {"id2label": {"1": "b", "0": "a", "10": "k", **{str(n): f"n{n}" for n in range(2, 10)}}}
    (head,) = heads("bert", architectures=["BertForSequenceClassification"], **config).values()
    assert head.names == ("a", "b", *(f"n{n}" for n in range(2, 10)), "k")


def test_labels_called_by_their_numbers_have_no_names():
    (head,) = heads(
        "bert", architectures=["BertForTokenClassification"], id2label={0: "LABEL_0", 1: "LABEL_1"}
    ).values()
    assert head.names == ()


@pytest.mark.parametrize("problem", ["regression", "multi_label_classification"])
def test_a_row_says_what_its_labels_are(problem):
    (head,) = heads("roberta", architectures=["RobertaForSequenceClassification"], problem_type=problem).values()
    assert head.problem == problem


@pytest.mark.parametrize(
    ("config", "named"),
    [
        ({"id2label": {"0": "a", "2": "b"}}, "does not name the labels 0 to 1"),
        ({"id2label": {"0": "a", "1": None}}, "does not name the labels 0 to 1"),
        ({"problem_type": "guess"}, "problem_type"),
        ({"id2label": {"0": "a", "1": "b", "2": "c"}, "num_labels": 2}, "num_labels = 2, but id2label names 3"),
        ({"id2label": {}}, "id2label is empty"),
    ],
    ids=str,
)
def test_labels_that_contradict_each_other_are_refused(config, named):
    with pytest.raises(ModelFileError, match=named):
        heads("bert", architectures=["BertForSequenceClassification"], **config)


@pytest.mark.parametrize("family", ["bert", "roberta", "distilbert", "electra", "albert", "deberta", "modernbert"])
def test_an_answer_with_other_than_two_ends_is_refused_by_name(family):
    stem = load_family(family).ARCHITECTURE.removesuffix("ForMaskedLM")
    with pytest.raises(ModelFileError, match=r"3 labels \(num_labels, id2label\)"):
        heads(family, architectures=[f"{stem}ForQuestionAnswering"], num_labels=3)


def test_a_masked_head_is_tied_or_not():
    head = heads("bert", tie_word_embeddings=False)["masked"]
    assert isinstance(head, LanguageModelHead.Spec)
    assert not head.tied


@pytest.mark.parametrize("name", ["BertLMHeadModel", "RobertaForMaskedLM", "Bert", "TFBertModel"])
def test_another_architecture_is_refused_by_name(name):
    with pytest.raises(ModelFileError, match=f"'{name}' is not known") as error:
        heads("bert", architectures=[name])
    known = error.value.hint.removeprefix("known: ").split(", ")
    assert {"BertModel", "BertForMaskedLM", "BertForSequenceClassification"} <= set(known)
    assert all(heads("bert", architectures=[other]) for other in known)


def test_a_head_that_the_family_does_not_have_is_refused_by_name():
    with pytest.raises(ModelFileError, match="electra has no head 'next', which ForNextSentencePrediction") as error:
        heads("electra", architectures=["ElectraForNextSentencePrediction"])
    assert error.value.hint == "is it another family's?"


@pytest.mark.parametrize("part", ["spec", "WEIGHTS", "DEFAULTS", "TINY", "ARCHITECTURE"])
def test_a_registered_family_has_every_part(part, monkeypatch):
    own = ModuleType("own_family")
    for name in {"spec", "WEIGHTS", "DEFAULTS", "TINY", "ARCHITECTURE"} - {part}:
        setattr(own, name, {})
    monkeypatch.setitem(sys.modules, "own_family", own)
    monkeypatch.setattr(_registry, "_registered", {})
    register("own_family")
    assert "own_family" in names()
    with pytest.raises(UsageError, match=f"the family 'own_family' has no {part}") as error:
        load_family("own_family")
    assert "families/gpt2.py" in error.value.hint
    setattr(own, part, {})
    assert load_family("own_family") is own
