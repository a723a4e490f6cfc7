"""The view of a live cache: places, bytes and numbers of every kind of store, and what a wrong store would show."""

import pytest
import torch

from orrery.errors import UsageError
from orrery.nn.cache.sliding import SlidingStore
from orrery.nn.cache.slots import SlotStore
from orrery.nn.cache.states import StateStore
from orrery.page.views._inside import Inside
from orrery.page.views._live_cache import STEPPED, live_cache
from orrery.page.views._view import ViewSubject, find, shown
from views_toy import given_to, language_model_of, subject_of

LONG = "the cat sat on the mat, the dog sat on the log and the cat sat on the dog"
FAMILIES = ("gpt2", "llama", "mistral", "gemma3_text", "deepseek_v3", "diffllama", "mamba", "jamba", "t5", "rnnsearch")


def passed(payload):
    assert payload.checks
    return all(check.passed for check in payload.checks)


@pytest.mark.parametrize("family", FAMILIES)
def test_what_is_held_is_what_a_pass_without_a_cache_computes(family):
    """In float64 to 1e-10, behind any number of tokens, for every layer."""
    lm = language_model_of(family, dtype=torch.float64)
    inside = Inside(lm, given_to(lm, LONG))
    for tokens in {1, 2, len(inside.tokens) // 2, len(inside.tokens)}:
        cache = live_cache(inside, tokens)
        assert cache.tokens == tokens
        assert cache.stepped == min(STEPPED, tokens - 1)
        assert cache.layers
        assert cache.allocated >= sum(layer.bytes for layer in cache.layers if layer.kind != "source")
        for layer in cache.layers:
            assert layer.check().value <= 1e-10, layer
            assert layer.positions == sorted(layer.positions)
            assert len(set(layer.slots)) == len(layer.positions)


def test_the_numbers_are_those_of_the_pass():
    subject = subject_of("llama", text=LONG)
    length = len(subject.seen.tokens)
    payload = shown("cached", subject, {"layer": 1, "head": 1})
    for name in ("k", "v"):
        wanted = subject.seen[f"blocks.1.attention.{name}"][0, 1]
        assert torch.allclose(payload.tensors[name], wanted, atol=1e-5)
        assert not torch.allclose(payload.tensors[name], subject.seen[f"blocks.1.attention.{name}"][0, 0], atol=1e-2)
    assert payload.facts["positions"] == payload.facts["slots"] == list(range(length))
    assert payload.facts["served"] == [3, 4, 5]
    told = payload.facts["layers"][1]
    assert (told["kind"], told["heads"], told["held"], told["places"]) == ("keys", 6, 2, length)
    assert told["bytes"] == 2 * 2 * length * 4 * 4
    assert passed(payload)


def test_a_window_lets_go_of_what_is_behind_it():
    subject = subject_of("mistral", text=LONG)
    length, window = len(subject.seen.tokens), 5
    assert length > 2 * window
    payload = shown("cached", subject, {})
    places = list(range(length - window, length))
    assert payload.facts["positions"] == places
    assert payload.facts["slots"] == [place % window for place in places]
    assert payload.facts["layers"][0]["window"] == window
    wanted = subject.seen["blocks.0.attention.k"][0, 0, places]
    assert torch.allclose(payload.tensors["k"], wanted, atol=1e-5)
    early = shown("cached", subject, {"tokens": 3})
    assert early.facts["positions"] == [0, 1, 2]
    assert passed(payload)
    assert passed(early)


def test_a_latent_a_source_and_a_state_say_what_they_are():
    latent = shown("cached", subject_of("deepseek_v3", text=LONG), {})
    assert set(latent.tensors) == {"latent", "rotated"}
    assert latent.facts["layers"][0]["kind"] == "latent"
    assert latent.facts["served"] == [0, 1]
    t5 = subject_of("t5", text=LONG)
    kinds = [layer["kind"] for layer in shown("cached", t5, {}).facts["layers"]]
    assert kinds == ["keys", "source"] * 3
    cross = shown("cached", t5, {"layer": 1, "head": 2})
    assert torch.allclose(cross.tensors["v"], t5.seen["blocks.0.cross.v"][0, 2], atol=1e-5)
    assert cross.facts["positions"] == list(range(len(t5.seen.source_tokens)))
    mamba = subject_of("mamba", text=LONG)
    one, other = (shown("cached", mamba, {"tokens": tokens}) for tokens in (4, 9))
    assert one.facts["positions"] == []
    assert [layer["bytes"] for layer in one.facts["layers"]] == [layer["bytes"] for layer in other.facts["layers"]]
    assert not torch.equal(one.tensors["state 0"], other.tensors["state 0"])
    assert set(shown("cached", mamba, {"head": 1}).tensors) == {"state 1"}


@pytest.mark.parametrize(
    ("family", "store", "method"),
    [("llama", SlotStore, "_write"), ("mistral", SlidingStore, "_slide"), ("mamba", StateStore, "store_state")],
)
def test_a_store_that_keeps_other_numbers_is_seen(family, store, method, monkeypatch):
    right = getattr(store, method)
    steps = []

    def wrong(self, *args):
        *rest, given = args
        steps.append(1)
        one = given[0] if isinstance(given, tuple) else given
        late = one.dim() < 4 or one.shape[2] == 1
        changed = (given[0] * 1.001, *given[1:]) if isinstance(given, tuple) else given * 1.001
        return right(self, *rest, changed if late and len(steps) > 8 else given)

    monkeypatch.setattr(store, method, wrong)
    payload = shown("cached", subject_of(family, text=LONG), {})
    assert steps
    assert not passed(payload)


def test_scales_and_bases_of_the_pass_are_those_of_the_cache():
    lm = language_model_of("llama")
    edits = [{"at": "positions.*", "op": "rebase", "value": 77.0}]
    clean, turned = (ViewSubject(lm, Inside(lm, given_to(lm, LONG), one)) for one in ([], edits))
    rows = [shown("cached", one, {}).tensors["k"] for one in (clean, turned)]
    assert not torch.allclose(*rows, atol=1e-3)
    assert torch.allclose(rows[1], turned.seen["blocks.0.attention.k"][0, 0], atol=1e-5)
    assert not shown("cached", turned, {}).facts["edited"]
    ablated = Inside(lm, given_to(lm, LONG), [{"at": "blocks.0.attention.mixed", "op": "zero"}])
    payload = shown("cached", ViewSubject(lm, ablated), {"layer": 1})
    assert payload.facts["edited"]
    assert passed(payload)


def test_what_it_has_not_is_refused_and_where_nothing_is_kept_it_does_not_fit():
    subject = subject_of("llama")
    for asked, words in (
        ({"tokens": 99}, "a cache of 99 tokens of a text of"),
        ({"layer": 2}, "layer 2 of this cache holds no head 0"),
        ({"head": 2}, "layer 0 of this cache holds no head 2"),
        ({"tokens": 0}, "greater than or equal to 1"),
    ):
        with pytest.raises(UsageError, match=words):
            shown("cached", subject, asked)
    assert not find("cached").fits(subject_of("bert"))
    assert not find("cached").fits(ViewSubject(subject.lm))


def test_a_saved_page_may_hold_the_first_head_of_each_layer_before_the_others():
    saved = [(each.layer, each.head) for each in find("cached").saved(subject_of("llama"))]
    assert saved == [(0, 0), (1, 0), (0, 1), (1, 1)]
