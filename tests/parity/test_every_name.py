"""Every name of a trace, in every family: editing it changes the answer, or it is refused by its name.

An edit that silently does nothing is the worst fault that inspection can have: the reader concludes that the tensor
does not matter.
"""

import re

import pytest
import torch

from orrery.errors import UsageError
from orrery.families import _registry, names
from orrery.inspection.recorder import Recorder
from orrery.inspection.trace import trace
from orrery.models.dual_encoder import DualEncoder
from orrery.nn.attention.kernels import eager
from orrery.nn.context import Context
from tests.parity.shown import only_shown
from tiny_models import inputs_for, smallest


@pytest.fixture(params=[*names(), "decaying"])
def family(request, monkeypatch):
    monkeypatch.setitem(_registry._registered, "decaying", "mixer_toy")
    return request.param


@pytest.fixture
def inside(family):
    model = smallest(family)
    return trace(model, *inputs_for(model))


def moved(value, key):
    """Return a tensor with noise on the first text; what a mask hides stays hidden."""
    noise = torch.randn(value.shape[1:], generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    after = value.clone()
    after[0] += noise.to(value) / 10
    return torch.where(value.isneginf(), value, after)


def edited(traced, key):
    return trace(traced.model, *traced.inputs, keep=[key], edit={key: moved})


def answers(traced, run):
    """Return what a pass says of each row; of a dual encoder how well each picture fits the text of its own row."""
    return run.logits.diagonal()[:, None] if isinstance(traced.model, DualEncoder) else run.logits


def faults(traced, family):
    """Return by name what is wrong with an edit of the first text: it does nothing, or reaches the second text."""
    wrong = {}
    for key in traced:
        if only_shown(family, key):
            continue
        run = edited(traced, key)
        after, before = answers(traced, run), answers(traced, traced)
        if torch.equal(after[0], before[0]) or torch.equal(run[key][0], traced[key][0]):
            wrong[key] = "does nothing"
        # Not to the last bit: experts and the eager kernel round otherwise where the other text goes another way.
        elif error(after[1], before[1]) > 1e-12 or error(run[key][1], traced[key][1]) > 1e-12:
            wrong[key] = "reaches the other text"
    return wrong


def error(a, b):
    return float((a - b).masked_fill(b.isneginf(), 0).abs().max())


def one_of_each_kind(keys):
    """Return the last of the names that differ in the number of the block alone."""
    return list({re.sub(r"\.\d+\.", ".*.", key): key for key in keys}.values())


def test_an_edit_of_every_name_changes_the_logits_of_its_text(inside, family):
    assert len(list(inside)) > 10
    assert faults(inside, family) == {}


def test_what_is_only_shown_is_refused_by_name(inside, family):
    for key in inside:
        if instead := only_shown(family, key):
            for ask in (lambda key: edited(inside, key), lambda key: inside.edit().zero(key).run()):
                with pytest.raises(
                    UsageError, match=rf"the {key.rpartition('.')[2]} of .* is shown, not edited"
                ) as error:
                    ask(key)
                assert instead in error.value.hint


def test_the_list_of_edits_and_the_eager_kernel_reach_every_name(inside, family):
    plain = inside.model.logits(*inside.inputs, kernel=eager)
    for key in one_of_each_kind(inside):
        if only_shown(family, key):
            continue
        assert not torch.equal(inside.edit().zero(key).run([key]).logits, inside.logits), key
        if not key.endswith(".stepwise"):
            recorder = Recorder(keep=(), edit={key: moved})
            assert not torch.equal(inside.model.logits(*inside.inputs, kernel=eager, taps=recorder), plain), key


def test_a_missing_name_names_its_neighbours(inside):
    ways = [
        lambda missing: inside[missing],
        lambda missing: trace(inside.model, *inside.inputs, keep=[missing]),
        lambda missing: edited(inside, missing),
        lambda missing: inside.edit().zero(missing).run(),
    ]
    for number, key in enumerate(inside):
        missing = key + key[-1]
        for ask in ways if number % 11 == 0 else ways[:1]:
            with pytest.raises(UsageError, match="nothing is called") as error:
                ask(missing)
            assert f"'{missing}'" in error.value.message
            assert key in error.value.hint.removeprefix("there is: ").split(", "), missing


@pytest.mark.parametrize("name", ["mixed", "resid_pre", "added", "embedded", "k"])
def test_a_name_that_does_nothing_is_seen(name, monkeypatch):
    """The comparison sees a module that shows a tensor and goes on with its own."""
    right = Context.tap

    def deaf(self, owner, shown, value):
        after = right(self, owner, shown, value)
        return value if shown == name else after

    monkeypatch.setattr(Context, "tap", deaf)
    model = smallest("gpt2")
    traced = trace(model, *inputs_for(model))
    wrong = faults(traced, "gpt2")
    assert wrong
    assert {(key.rpartition(".")[2], fault) for key, fault in wrong.items()} == {(name, "does nothing")}


def test_an_edit_that_reaches_another_text_is_seen(monkeypatch):
    right = Recorder._edited

    def leaking(self, key, value):
        after = right(self, key, value)
        return after + torch.nan_to_num(after - value).roll(1, 0)

    monkeypatch.setattr(Recorder, "_edited", leaking)
    model = smallest("gpt2")
    assert set(faults(trace(model, *inputs_for(model)), "gpt2").values()) == {"reaches the other text"}
