"""The golden outputs that are shipped are what their makers compute, and a model that departs from them is seen."""

import json
import re

import pytest
import torch

from orrery.families import names
from orrery.laws import methods, outputs, questions
from orrery.laws.formula import numbers, whole_numbers
from orrery.nn.norms import RMSNorm
from orrery.nn.positions import rotary
from orrery.training.parallel import placement
from tests.goldens import make

SOME = {"llama", "bart", "bert", "vit", "lstm"}
"""One of each kind, in the quick tier."""


@pytest.mark.parametrize("family", [n if n in SOME else pytest.param(n, marks=pytest.mark.slow) for n in names()])
def test_the_shipped_numbers_are_what_the_oracle_computes(family):
    shipped, made = outputs.cases(family), json.loads(make.as_text(family))["cases"]
    assert [(c["name"], c["architecture"], c["config"]) for c in shipped] == [
        (c["name"], c["architecture"], c["config"]) for c in made
    ]
    for old, new in zip(shipped, made, strict=True):
        assert old["found"].keys() == new["found"].keys()
        for key in old["found"]:
            assert outputs.apart(new["found"][key], old["found"][key]) < 1e-11, (old["name"], key)


@pytest.mark.parametrize("method", make.METHODS)
def test_the_shipped_numbers_of_methods_are_what_their_formulas_give(method):
    shipped, made = methods.golden(method.removeprefix("_")), json.loads(make.as_text(method))["cases"]
    assert len(shipped) == len(made)
    for old, new in zip(shipped, made, strict=True):
        assert old.keys() == new.keys()
        assert all(same(old[key], new[key]) for key in old)


def same(a, b):
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    return abs(a - b) <= 1e-10 * max(1, abs(a)) if isinstance(a, float) else a == b


def test_methods_hold_and_a_wrong_one_is_seen(monkeypatch):
    assert [e for e in methods.check() if not e.passed] == []
    monkeypatch.setattr(placement, "clip_grad_norm_", lambda parameters, limit: clip(parameters, limit, 1.0))
    failed = {e.name for e in methods.check() if not e.passed}
    assert "AdamW, cosine, clipped: final weights == the formulas" in failed
    assert "AdamW, cosine, clipped: gradient norms == the formulas" in failed


clip = torch.nn.utils.clip_grad_norm_


@pytest.mark.parametrize("family", names())
def test_every_family_ships_golden_outputs(family):
    assert outputs.cases(family)


def test_they_are_small():
    assert sum(path.stat().st_size for path in make.FOLDER.iterdir()) < 300_000


def test_the_formula_is_the_one_that_is_written_down():
    """SplitMix64's published first outputs for the seed 1234567, as whole numbers of 64 bits."""
    expected = [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]
    state, drawn = 1234567, []
    for _ in range(5):
        state = (state + 0x9E3779B97F4A7C15) % 2**64
        z = state
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
        drawn.append(z ^ (z >> 31))
    assert drawn == expected
    assert numbers("a", (2, 3)).shape == (2, 3)
    assert float(numbers("a", (10_000,)).mean().abs()) < 0.01
    assert not torch.equal(numbers("a", (4,)), numbers("b", (4,)))
    assert set(whole_numbers("a", (1000,), 3, 6).tolist()) == {3, 4, 5}


def failed(family):
    return {re.sub(" ==.*", "", e.name) for e in outputs.check(family) if not e.passed}


def test_a_wrong_epsilon_is_seen(monkeypatch):
    right = RMSNorm.__init__

    def wrong(self, spec, width):
        right(self, spec, width)
        self.eps *= 10

    monkeypatch.setattr(RMSNorm, "__init__", wrong)
    assert {"grouped: logits", "grouped: loss", "grouped: gradients"} <= failed("llama")


def test_a_rotation_of_other_pairs_is_seen(monkeypatch):
    monkeypatch.setattr(rotary, "_rotate_halves", rotary._rotate_neighbours)
    assert "grouped: logits" in failed("llama")


def test_each_row_is_asked_alone_and_in_a_batch():
    rows = questions.texts(61)
    ids, real = outputs.padded(rows, "left")
    assert [row[keep].tolist() for row, keep in zip(ids, real, strict=True)] == [row.tolist() for row in rows]
    assert not real[2, :-3].any()
