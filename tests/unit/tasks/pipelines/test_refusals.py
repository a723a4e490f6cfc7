"""What pipelines refuse: the class of the error, what is wrong, and what to do."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import orrery
import refusals
from orrery.errors import DataError, UsageError
from orrery.exchange.reading.read import Stored
from orrery.families import load_family, spec_of
from orrery.language_model.model import LanguageModel
from orrery.tasks.pipelines._heads import labels_of
from orrery.tasks.pipelines._rows import ask, room_of, vocabulary
from orrery.tasks.zero_shot_classification import _entailment, filled
from orrery.text.special import framed_tokenizer
from tiny_models import TOKENIZER, randomised

HEADS = {"sequence": "BertForSequenceClassification", "span": "BertForQuestionAnswering", "bare": "BertModel"}


def made(family, tokenizer, **config):
    rules = load_family(family)
    sized = {"vocab_size": tokenizer.size} if "vocab_size" in rules.TINY else {}
    model = randomised(spec_of(rules, {**rules.TINY, **sized, **config}).build(0).eval())
    return LanguageModel(Stored(Path("tiny"), model, tokenizer=tokenizer))


@pytest.fixture(scope="module")
def models():
    """Encoders with one head each, and a model of images."""
    bert = framed_tokenizer(TOKENIZER, "bert")
    by_name = {name: made("bert", bert, architectures=[architecture]) for name, architecture in HEADS.items()}
    return SimpleNamespace(**by_name, vit=made("vit", TOKENIZER), t5=made("t5", framed_tokenizer(TOKENIZER, "t5")))


WITHOUT_LABELS = SimpleNamespace(problem="", labels=0)
REFUSED = {
    "no room": (
        lambda m: room_of(m.bare, paired=False, length=2), UsageError, "rows of 2 tokens have no room", "a longer row",
    ),
    "images": (lambda m: vocabulary(m.vit), UsageError, "reads images, not texts", "load a model of texts"),
    "a reader": (
        lambda m: ask(m.t5, [], "head"), UsageError, "no head over what it reads", "load an encoder or a decoder",
    ),
    "another head": (
        lambda m: orrery.pipeline("text-classification", m.span)("a"), UsageError,
        "this model has no head 'sequence' for text-classification", "its heads: span",
    ),
    "no head": (
        lambda m: orrery.pipeline("token-classification", m.bare)("a"), UsageError,
        "this model has no head 'token' for token-classification", "its heads: pooled",
    ),
    "a head of another name": (
        lambda m: orrery.pipeline("text-classification", m.sequence)("a", head="mood"), UsageError, "no head 'mood'",
        "its heads: sequence",
    ),
    "no labels": (
        lambda m: labels_of(np.zeros(0), WITHOUT_LABELS, None),
        UsageError, "this head has no labels", "choose another with head=",
    ),
    "an answer of one end": (
        lambda m: orrery.pipeline("question-answering", m.sequence)(question="a", context="b"), UsageError,
        "no head 'span' for question-answering", "its heads: sequence",
    ),
    "a question twice": (
        lambda m: orrery.pipeline("question-answering", m.span)({"question": "a", "context": "b"}, question="c"),
        UsageError, "question and context are given twice", "by name, or as a mapping",
    ),
    "a place for no label": (
        lambda m: filled("it is so.", "art"), UsageError, "'it is so.' has no place for a label", "write {}",
    ),
    "a place that is none": (
        lambda m: filled("{label} it is", "art"), UsageError, "has no place for a label", "write {} where",
    ),
    "no entailment": (
        lambda m: _entailment(["yes", "no"]), UsageError, "none of the labels yes, no begins with 'entail'",
        "load a model of entailment, or name its labels",
    ),
    "a vector of nothing": (
        lambda m: m.bare.vectors([[]]), DataError, "there is not one id", "give at least one",
    ),
    "a vector of the second": (
        lambda m: m.bare.vectors(["a", []]), DataError, "input 2: there is not one id", "give at least one",
    ),
    "a vector of too many": (
        lambda m: m.bare.vectors([[5] * (m.bare.context + 1)]), UsageError, "longer than this model's context",
        "shorten it",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_it_is_refused_by_name_with_what_to_do(models, case):
    refusals.check(REFUSED[case], models)


def test_entailment_is_found_by_the_beginning_of_its_name():
    assert _entailment(["contradiction", "neutral", "ENTAILMENT"]) == 2
    assert filled("about {}.", "art") == "about art."
