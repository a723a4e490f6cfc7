"""The classes of a classifier and of a tagger, with the saliency of one."""

import pytest
import torch

from orrery.page.views._inside import Inside
from orrery.page.views._view import ViewSubject, fitting, shown
from views_toy import PIXELS, language_model_of

HEADS = {"row": "BertForSequenceClassification", "token": "BertForTokenClassification"}


def subject_of(family: str = "bert", given: object = None, **config: object) -> ViewSubject:
    lm = language_model_of(family, **config)
    return ViewSubject(lm, Inside(lm, given or {"text": "the cat sat on"}))


@pytest.mark.parametrize("of", HEADS)
def test_probabilities_are_the_heads_and_saliency_is_the_traces(of):
    subject = subject_of(architectures=[HEADS[of]])
    payload = shown("classes", subject, {"position": 1})
    trace = subject.seen.first
    wanted = trace.logits[0].double().softmax(-1).reshape(-1, trace.logits.shape[-1])
    assert payload.facts["of"] == of
    assert torch.allclose(payload.tensors["probability"].double(), wanted, atol=1e-6)
    saliency = trace.saliency(None, position=1)
    assert torch.equal(payload.tensors["tokens"], saliency.value_BL[0])
    assert payload.facts["label"] == int(saliency.token_B[0]) == int(wanted[0 if of == "row" else 1].argmax())
    assert all(check.passed for check in payload.checks)
    assert len(payload.checks) == 2


def test_a_label_can_be_chosen():
    subject = subject_of(architectures=[HEADS["row"]])
    one, other = (shown("classes", subject, {"label": label}) for label in (0, 1))
    assert (one.facts["label"], other.facts["label"]) == (0, 1)
    assert not torch.equal(one.tensors["tokens"], other.tensors["tokens"])


@pytest.mark.parametrize(
    ("problem", "function"),
    [("multi_label_classification", "sigmoid"), ("regression", "none"), ("single_label_classification", "softmax")],
)
def test_the_problem_of_the_head_says_what_makes_probabilities(problem, function):
    subject = subject_of(architectures=[HEADS["row"]], problem_type=problem)
    payload = shown("classes", subject, {})
    ways = {"sigmoid": torch.sigmoid, "none": torch.clone, "softmax": lambda logits: logits.softmax(-1)}
    assert payload.facts["function"] == function
    assert torch.allclose(payload.tensors["probability"], ways[function](subject.seen.first.logits).float(), atol=1e-6)


def test_a_picture_has_a_class_too():
    payload = shown("classes", subject_of("vit", {"image": PIXELS}), {})
    assert payload.tensors["probability"].sum().item() == pytest.approx(1, abs=1e-6)
    assert len(payload.facts["labels"]) == payload.tensors["probability"].shape[-1]


@pytest.mark.parametrize("architecture", ["BertForMaskedLM", "BertModel", "BertForQuestionAnswering"])
def test_other_heads_have_no_classes(architecture):
    assert "classes" not in {view.kind for view in fitting(subject_of(architectures=[architecture]))}
