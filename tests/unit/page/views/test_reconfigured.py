"""A head's pattern with another scale or base, and the views of a pass that runs with them."""

import pytest
import torch

from orrery.errors import UsageError
from orrery.inspection.interventions.configured import rotations
from orrery.page.views._inside import Inside
from orrery.page.views._reconfigured import Reconfigured
from orrery.page.views._view import ViewSubject, fitting, shown
from views_toy import given_to, language_model_of, subject_of

FACTOR, BASE = 0.37, 321.0
FAMILIES = (
    "llama",
    "gemma2",
    "smollm3",
    "deepseek_v2",
    "deberta_v2",
    "gpt_oss",
    "ministral3",
    "modernbert",
    "diffllama",
    "bart",
)
TEXT = "the cat sat on the mat, the dog"


def edits_of(base):
    turned = [] if base is None else [{"at": "*positions.*", "op": "rebase", "value": base}]
    return [{"at": "*blocks.*", "op": "rescale", "scale": FACTOR}, *turned]


@pytest.mark.parametrize("family", FAMILIES)
def test_the_first_block_has_the_pattern_of_the_whole_pass(family):
    """What enters the first block does not depend on scales and bases, so that its queries and keys say all."""
    lm = language_model_of(family, dtype=torch.float64)
    given = given_to(lm, TEXT)
    inside = Inside(lm, given)
    path = inside.sites[0].key(0, "")[:-1]
    base = BASE if list(rotations(lm.model)) else None
    whole = Inside(lm, given, edits_of(base))[f"{path}.pattern"][0]
    for head in range(len(whole)):
        pattern = Reconfigured(inside, path, FACTOR, base).pattern(head)
        assert float((pattern - whole[head]).abs().max()) < 1e-12
        wrong = Reconfigured(inside, path, 1.01 * FACTOR, base).pattern(head)
        assert float((wrong - whole[head]).abs().max()) > 1e-9


def test_a_pass_that_has_another_scale_already_is_the_one_that_is_changed():
    lm = language_model_of("llama", dtype=torch.float64)
    given = given_to(lm, TEXT)
    path = "blocks.0.attention"
    halfway = Inside(lm, given, [{"at": path, "op": "rescale", "scale": 2.0}, *edits_of(77.0)[1:]])
    whole = Inside(lm, given, edits_of(BASE))[f"{path}.pattern"][0, 1]
    pattern = Reconfigured(halfway, path, FACTOR / 2, BASE).pattern(1)
    assert float((pattern - whole).abs().max()) < 1e-12


def test_the_view_sends_it_and_refuses_what_has_none():
    subject = subject_of("llama")
    sent = shown("attention", subject, {"layer": 1, "head": 2, "factor": FACTOR, "base": BASE}).tensors["pattern"]
    wanted = Reconfigured(subject.seen, "blocks.1.attention", FACTOR, BASE).pattern(2)
    assert torch.equal(sent, wanted.half())
    assert torch.allclose(sent.float().sum(-1), torch.ones(len(sent)), atol=2e-3)
    plain = shown("attention", subject, {"layer": 1, "head": 2, "factor": 1}).tensors["pattern"]
    assert torch.equal(plain, subject.seen["blocks.1.attention.pattern"][0, 2].half())
    for wrong, words in (
        ({"layer": 1, "factor": 2}, "no head None"),
        ({"layer": 1, "head": 9, "factor": 2}, "no head 9"),
        ({"layer": 1, "head": 1, "base": 1}, "greater than 1"),
        ({"layer": 1, "head": 1, "factor": "inf"}, "finite"),
    ):
        with pytest.raises(UsageError, match=words):
            shown("attention", subject, wrong)
    with pytest.raises(UsageError, match="do not rotate"):
        shown("attention", subject_of("gpt2"), {"layer": 0, "head": 0, "base": 500})
    lm = subject.lm
    taken = Inside(lm, given_to(lm), [{"at": "blocks.1.attention.scores", "op": "mask", "position": 3, "key": 1}])
    edited = ViewSubject(lm, taken)
    assert shown("tokens", edited, {}).facts["quick"] == ["blocks.0.attention"]
    with pytest.raises(UsageError, match="cannot be made again alone"):
        shown("attention", edited, {"layer": 1, "head": 1, "factor": 2})


@pytest.mark.parametrize("family", ["llama", "deepseek_v2", "deberta_v2", "gpt_oss"])
def test_every_view_of_such_a_pass_is_sure_of_its_numbers(family):
    lm = language_model_of(family)
    base = BASE if list(rotations(lm.model)) else None
    subject = ViewSubject(lm, Inside(lm, given_to(lm, TEXT), edits_of(base)))
    for view in fitting(subject):
        if view.screen == "inside":
            failed = [check for check in shown(view.kind, subject, {}).checks if not check.passed]
            assert not failed, (view.kind, failed)


def test_tokens_tell_scales_and_bases_of_the_model():
    lm = language_model_of("llama")
    subject = ViewSubject(lm, Inside(lm, given_to(lm), edits_of(BASE)))
    facts = shown("tokens", subject, {}).facts
    width = lm.model.spec.stack.blocks[0].residuals["attention"].branch.head_width
    assert facts["sites"][0]["scale"] == width**-0.5
    assert facts["quick"] == ["blocks.0.attention", "blocks.1.attention"]
    assert facts["bases"] == {"positions.rotary": 10_000.0}
    assert shown("tokens", subject_of("gpt2"), {}).facts["bases"] == {}
