"""Positions: every scheme's numbers, and the identity that each satisfies."""

import pytest
import torch

from orrery.errors import UsageError
from orrery.nn.positions.sinusoidal import SinusoidalPositions, rates
from orrery.page.views import position
from orrery.page.views._view import ViewSubject, find, shown
from orrery.page.views.position import offset_check, schemes_of, shift_check
from views_toy import subject_of

KINDS = {
    "transformer": "sinusoidal",
    "gpt2": "learned",
    "bert": "learned",
    "pegasus": "learned",
    "llama": "rotary",
    "deepseek_v3": "rotary",
    "gemma3_text": "rotary",
    "gptj": "rotary",
    "bloom": "bias",
    "mpt": "bias",
    "t5": "bias",
    "deberta": "distances",
}


def payloads(family):
    subject = subject_of(family)
    count = len(schemes_of(subject.lm.model))
    return subject, [shown("position", subject, {"scheme": number, "query": 2, "key": 1}) for number in range(count)]


@pytest.mark.parametrize("family", KINDS)
def test_every_scheme_passes_the_checks_of_its_kind(family):
    _, shown_payloads = payloads(family)
    assert shown_payloads
    for payload in shown_payloads:
        assert payload.facts["kind"] == KINDS[family]
        assert all(check.passed for check in payload.checks), payload.checks
    if KINDS[family] != "distances":
        assert any(payload.checks for payload in shown_payloads)


def test_a_learned_table_is_that_of_the_model():
    subject, (payload,) = payloads("gpt2")
    (scheme,) = schemes_of(subject.lm.model)
    places = payload.facts["places"]
    table = scheme.module.table.weight[:places].float()
    assert torch.equal(payload.tensors["table"], table)
    torch.testing.assert_close(payload.tensors["products"], table @ table.T)


def test_the_curve_of_a_query_and_a_key_passes_through_their_score():
    subject, (payload,) = payloads("llama")
    score = subject.seen["blocks.0.attention.scores"][0, 0, 2, 1]
    torch.testing.assert_close(payload.tensors["curve"][1], score, rtol=1e-4, atol=1e-5)


def test_the_biases_are_those_of_the_scores():
    subject, (payload,) = payloads("bloom")
    first = payload.facts["first"]
    bias, numbers = payload.tensors["bias"], subject.seen.explainer.numbers
    scale = numbers.nodes["blocks.0.attention.scores"].scale
    rest = subject.seen["blocks.0.attention.scores"][0] - scale * numbers["blocks.0.attention.products"][0]
    for query, key in ((3, 1), (2, 2)):
        torch.testing.assert_close(bias[:, key - query - first], rest[:, query, key], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("halves", [False, True])
@pytest.mark.parametrize("width", [16, 7])
def test_sinusoids_shift_by_a_rotation(halves, width):
    module = SinusoidalPositions.Spec(halves=halves).build(width)
    place = torch.arange(60)
    table = position.Scheme("", "x", module).bind(60, 60).table_BLD[0]
    assert table.shape == (60, width)
    check = shift_check(table, rates(module.base, width, place), module)
    assert check.passed, check
    assert offset_check(table).passed


def test_vectors_that_are_no_sinusoids_fail_both_identities():
    module = SinusoidalPositions.Spec().build(16)
    table = torch.randn(60, 16, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    assert not shift_check(table, rates(1e4, 16, table), module).passed
    assert not offset_check(table).passed


def test_a_rotation_that_sees_more_than_the_distance_fails(monkeypatch):
    from orrery.nn.positions.rotary import _Rotated

    right = _Rotated.rotate
    subject = subject_of("llama")
    whole = subject.seen.explainer  # before the fault
    assert whole

    def wrong(self, x):
        return right(self, x) + 0.1

    monkeypatch.setattr(_Rotated, "rotate", wrong)
    checks = shown("position", subject, {}).checks
    assert [check.passed for check in checks] == [False, False]


def test_a_model_without_positions_has_no_such_view():
    assert not find("position").fits(subject_of("rnnsearch"))
    assert not find("position").fits(ViewSubject(subject_of("gpt2").lm))


def test_a_scheme_that_is_not_there_is_refused():
    with pytest.raises(UsageError, match="no position scheme 5"):
        shown("position", subject_of("gpt2"), {"scheme": 5})
