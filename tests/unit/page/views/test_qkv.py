"""The steps of one head: every operand is the trace's tensor, every step's check is the recomputed result."""

import pytest
import torch

from orrery.errors import UsageError
from orrery.page.views._inside import Inside
from orrery.page.views._view import ViewSubject, shown
from views_toy import subject_of

FAMILIES = (
    *("gpt2", "llama", "bert", "t5", "bart", "deepseek_v3", "gemma2", "deberta_v2", "bloom", "gpt_oss", "qwen3"),
    "qwen3_next",
)


@pytest.fixture(scope="module")
def subjects():
    made = {}

    def find(family):
        if family not in made:
            made[family] = subject_of(family)
        return made[family]

    return find


def asked(subject, site=0, head=1, query=None):
    layer = subject.seen.sites[site].layers[-1]
    return {"site": site, "layer": layer, "head": head, **({} if query is None else {"query": query})}


@pytest.mark.parametrize("family", FAMILIES)
def test_every_step_of_every_attention_passes_its_check(subjects, family):
    subject = subjects(family)
    for site in range(len(subject.seen.sites)):
        payload = shown("qkv", subject, asked(subject, site, query=1))
        names = [check.name for check in payload.checks]
        assert len(names) >= 5, names
        assert all(check.passed for check in payload.checks), payload.checks


@pytest.mark.parametrize("family", ["llama", "t5", "deepseek_v3"])
def test_the_operands_are_the_tensors_of_the_pass(subjects, family):
    subject = subjects(family)
    inside = subject.seen
    payload = shown("qkv", subject, asked(subject, query=2))
    path, tensors = payload.facts["path"], payload.tensors
    heads, shared = inside.shapes[f"{path}.q"][1], payload.facts["shared"]
    assert shared == inside.shapes[f"{path}.v"][1] // heads
    rows = {"q": (1, 2), "scores": (1, 2), "pattern": (1, 2), "mixed": (1, 2), "k": (shared,), "v": (shared,)}
    for name, place in rows.items():
        assert torch.equal(tensors[name], inside[f"{path}.{name}"][0][place]), name
    seen = tensors["scores"] > float("-inf")
    bias = tensors.get("bias", torch.zeros_like(tensors["scores"]))
    expected = payload.facts["scale"] * tensors["products"] + bias
    torch.testing.assert_close(tensors["scores"][seen], expected[seen])


def test_what_an_attention_cannot_show_is_said(subjects):
    assert shown("qkv", subjects("deepseek_v3"), asked(subjects("deepseek_v3"))).facts["notes"] == ["latent"]
    assert shown("qkv", subjects("llama"), asked(subjects("llama"))).facts["notes"] == ["shared"]
    assert shown("qkv", subjects("qwen3_next"), asked(subjects("qwen3_next"))).facts["notes"] == ["shared", "gated"]
    assert shown("qkv", subjects("gpt2"), asked(subjects("gpt2"))).facts["notes"] == []
    crossed = subjects("bart")
    site = next(n for n, one in enumerate(crossed.seen.sites) if one.queries != one.keys)
    assert "cross" in shown("qkv", crossed, asked(crossed, site)).facts["notes"]
    recurrent = subjects("rnnsearch")
    payload = shown("qkv", recurrent, asked(recurrent, head=0))
    assert payload.facts["notes"] == ["recurrent", "cross"]
    assert set(payload.tensors) == {"pattern", "v", "mixed"}
    assert all(check.passed for check in payload.checks)


@pytest.mark.parametrize(
    ("key", "fails"),
    [
        ("q", "the scaled products and the bias are the scores"),
        ("scores", "the softmax of the scores is the pattern"),
        ("pattern", "weights times values are the kernel's output"),
        ("mixed", "weights times values are the kernel's output"),
        ("added", "that is what is added to the stream"),
    ],
)
def test_a_wrong_operand_fails_the_check_of_its_step(subjects, key, fails):
    whole = subjects("llama")
    inside = Inside(whole.lm, whole.seen.given)
    name = f"blocks.1.attention.{key}"
    object.__setattr__(inside.first, "values", {**inside.first.values, name: inside[name] * 1.01})
    checks = shown("qkv", ViewSubject(whole.lm, inside), asked(whole, query=3)).checks
    assert fails in {check.name for check in checks if not check.passed}


def test_what_is_not_there_is_refused(subjects):
    with pytest.raises(UsageError, match="no head 9"):
        shown("qkv", subjects("gpt2"), {"head": 9})
    with pytest.raises(UsageError, match="block 7"):
        shown("qkv", subjects("gpt2"), {"layer": 7})


def test_a_saved_page_may_hold_all_of_it_the_last_token_first(subjects):
    from orrery.page.views._view import find

    everything = list(find("qkv").saved(subjects("llama")))
    subject = subjects("llama")
    assert len(everything) == len(subject.seen.tokens) * sum(len(s.layers) * s.heads for s in subject.seen.sites)
    assert everything[0].query == len(subject.seen.tokens) - 1
