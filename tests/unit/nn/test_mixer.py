"""A mixer with a state is one new file (``tests/mixer_toy.py``): its forms, its weights, the laws that it is under."""

import pytest
import torch

from mixer_toy import Decaying
from orrery.errors import UsageError
from orrery.families import _registry, load_family
from orrery.inspection.trace import trace
from orrery.laws import cache, packing, padding, recurrence, sight
from orrery.laws.models import tiny
from orrery.models.initialise import initialise
from orrery.nn.attention.multihead import MultiHeadAttention
from orrery.nn.block import Block
from orrery.nn.masks import Causal, RecurrentPast
from orrery.nn.recurrent.lstm import LSTM
from orrery.nn.residual import NoSkip, Residual
from orrery.nn.stack import Stack

LAWS = {"recurrence": recurrence, "cache": cache, "packing": packing, "padding": padding, "sight": sight}


@pytest.fixture
def decaying(monkeypatch):
    monkeypatch.setitem(_registry._registered, "decaying", "mixer_toy")
    return "decaying"


def failed(law, family):
    return {e.name for e in law.check(family) if not e.passed}


@pytest.mark.parametrize("law", LAWS)
def test_a_new_mixer_is_under_the_laws_without_another_file(decaying, law):
    evidence = list(LAWS[law].check(decaying))
    assert [e for e in evidence if not e.passed] == []
    if law != "cache":
        forms = ("chunked", "parallel") if law == "recurrence" else ("step", "chunked", "parallel")
        assert all(any(form in e.name for e in evidence) for form in forms)


@pytest.mark.parametrize("form", ["step", "parallel", "chunked"])
def test_a_cached_session_is_the_same_in_every_form(decaying, monkeypatch, form):
    monkeypatch.setattr(tiny(decaying), "scan", form)
    assert failed(cache, decaying) == set()


def test_the_law_finds_a_form_that_forgets_what_came_before_its_pieces(decaying, monkeypatch):
    right = Decaying.chunked

    def forgetful(self, x_NTD, real_NT, state):
        return right(self, x_NTD, real_NT, tuple(torch.zeros_like(part) for part in state))

    monkeypatch.setattr(Decaying, "chunked", forgetful)
    wrongs = failed(recurrence, decaying)
    assert {"chunked form == steps, float64", "chunked form == steps, float32"} <= wrongs
    assert not any("parallel" in name for name in wrongs)


def test_the_law_finds_a_form_that_leaves_another_state(decaying, monkeypatch):
    right = Decaying.parallel

    def padding_decays(self, x_NTD, real_NT, state):
        y_NTD, _ = right(self, x_NTD, real_NT, state)
        return y_NTD, right(self, x_NTD, None, state)[1]

    monkeypatch.setattr(Decaying, "parallel", padding_decays)
    assert "parallel form == steps, float64" in failed(recurrence, decaying)


def test_the_law_finds_a_form_with_another_gradient(decaying, monkeypatch):
    right = Decaying.chunked

    def half_as_steep(self, x_NTD, real_NT, state):
        y_NTD, after = right(self, x_NTD, real_NT, state)
        return y_NTD + (y_NTD.detach() - y_NTD) / 2, after

    monkeypatch.setattr(Decaying, "chunked", half_as_steep)
    assert failed(recurrence, decaying) == {
        "chunked form == steps, float64",
        "chunked form == steps, float32",
        "chunked form == steps, gradients, float64",
        "outputs alone == steps, gradients, float64",  # what is computed where no form is named
    }


def test_the_law_finds_a_form_whose_gradient_ends_at_its_pieces(decaying, monkeypatch):
    right = Decaying.parallel

    def cut(self, x_NTD, real_NT, state):
        return right(self, x_NTD, real_NT, tuple(part.detach() for part in state))

    def truncated(self, x_NTD, real_NT, state):
        self.parallel = cut.__get__(self)
        try:
            return whole(self, x_NTD, real_NT, state)
        finally:
            del self.parallel

    whole = Decaying.chunked
    monkeypatch.setattr(Decaying, "chunked", truncated)
    assert failed(recurrence, decaying) == {
        "chunked form == steps, float64",
        "chunked form == steps, float32",
        "chunked form == steps, gradients, float64",
        "outputs alone == steps, gradients, float64",  # what is computed where no form is named
    }


def test_the_law_finds_a_definition_that_cannot_go_on_from_its_state(decaying, monkeypatch):
    right = Decaying.step

    def absolute(self, x_BD, state, show):
        y_BD, after = right(self, x_BD, state, show)
        return y_BD, tuple(part * (1 if part.abs().max() < 0.5 else 0.5) for part in after)

    monkeypatch.setattr(Decaying, "step", absolute)
    assert "parallel form == steps, float64" in failed(recurrence, decaying)


def test_a_form_that_a_mixer_lacks_is_refused_by_name():
    rules = load_family("lstm")
    model = rules.spec(rules.TINY).build(0)
    with pytest.raises(UsageError, match="LSTM has no form 'chunked'") as refused:
        model.logits(torch.zeros(1, 3, dtype=torch.long), scan="chunked")
    assert refused.value.hint == "it has: parallel, step"
    rules = load_family("rnnsearch")
    listening, ids = rules.spec(rules.TINY).build(0), torch.zeros(1, 3, dtype=torch.long)
    assert torch.equal(listening.logits(ids, ids, scan="step"), listening.logits(ids, ids))
    with pytest.raises(UsageError, match="BahdanauDecoder has no form 'parallel'"):
        listening.logits(ids, ids, scan="parallel")


def test_the_form_is_the_models_or_the_calls(decaying, monkeypatch):
    ran = []
    for form in ("step", "parallel", "chunked"):
        right = getattr(Decaying, form)
        monkeypatch.setattr(
            Decaying, form, lambda self, *given, form=form, right=right: ran.append(form) or right(self, *given)
        )
    model, ids = (
        load_family(decaying).spec({**load_family(decaying).TINY, "num_layers": 1}).build(0),
        torch.zeros(1, 1).long(),
    )
    initialise(model, 1, seed=0)
    for own, call, expected in (
        (None, {}, "chunked"),
        ("step", {}, "step"),
        ("step", {"scan": "parallel"}, "parallel"),
    ):
        model.scan = own
        ran.clear()
        model.logits(ids, **call)
        assert ran[0] == expected


def test_weights_of_a_new_mixer_are_drawn_as_it_says_from_the_seed_alone(decaying):
    rules = load_family(decaying)
    drawn = []
    for chance in (0, 1):
        torch.manual_seed(chance)
        model = rules.spec({**rules.TINY, "hidden_size": 64}).build(0)
        initialise(model, depth=2, seed=5)
        drawn.append(model.state_dict())
    first, second = drawn
    assert all(torch.equal(first[name], second[name]) for name in first)
    branch = "stack.blocks.1.recurrence.branch"
    assert 2 < float(first[f"{branch}.decay"].abs().max()) <= 3
    assert abs(float(first[f"{branch}.qkv.weight"].std()) / 0.02 - 1) < 0.1
    assert abs(float(first[f"{branch}.out.weight"].std()) / 0.01 - 1) < 0.1  # into the stream, at depth 2
    assert abs(float(first["embed.token.weight"].std()) / 0.02 - 1) < 0.1


def test_a_trace_shows_what_the_steps_show_and_checks_them_against_the_form(decaying):
    seen = trace(tiny(decaying), torch.randint(61, (2, 7)))
    assert all(check.passed for check in seen.checks)
    assert "gates step by step give the engine's states" in {check.name for check in seen.checks}
    assert seen["blocks.1.recurrence.strength"].shape == (2, 7, 16)
    real = torch.arange(7) >= torch.tensor([[3], [0]])
    padded = trace(tiny(decaying), torch.randint(61, (2, 7)), real=real)["blocks.0.recurrence.strength"]
    assert not padded[0, :3].any()
    assert padded[real].all()


def test_a_state_and_keys_are_remembered_under_masks_of_their_own():
    attention = MultiHeadAttention.Spec(heads=2, kv_heads=2, head_width=4, mask="past")
    lstm = LSTM.Spec(mask="causal")
    for branch, kind in ((attention, "a state"), (lstm, "keys")):
        stack = Stack.Spec(
            blocks=(Block.Spec(residuals={"mixer": Residual.Spec(branch=branch, skip=NoSkip.Spec())}),),
            positions={},
            masks={"past": RecurrentPast(), "causal": Causal()},
        )
        with pytest.raises(UsageError, match=f"which is that of {kind}"):
            stack.build(8)
