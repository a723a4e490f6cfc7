"""Probes: what they find in known values and in a model, their controls, and what is refused."""

import pytest
import torch

from orrery.errors import UsageError
from orrery.inspection.research.activations import collect
from orrery.inspection.research.probes import linear_probing, probe_values
from orrery.inspection.research.readouts import LogisticRegression, RidgeRegression
from orrery.inspection.trace import trace
from orrery.nn.cross_entropy import IGNORED
from tiny_models import smallest, tiny

RNG = torch.Generator().manual_seed(0)
IDS = torch.randint(0, 40, (24, 12), generator=RNG)


def previous(ids_BL):
    """The token before, as labels; the first has none."""
    return torch.cat([torch.full_like(ids_BL[:, :1], IGNORED), ids_BL[:, :-1]], 1)


def test_values_are_collected_as_a_trace_has_them() -> None:
    model = tiny("llama")
    keep = ["blocks.*.resid_post", "blocks.1.attention.k", "blocks.0.attention.mixed"]
    told: list[tuple[int, int]] = []
    collected = collect(model, IDS, keep, rows=7, done=lambda *count: told.append(count))
    inside = trace(model, IDS)
    assert told == [(7, 24), (14, 24), (21, 24), (24, 24)]
    assert set(collected) == {"blocks.0.resid_post", "blocks.1.resid_post", *keep[1:]}
    for key, value in collected.items():
        expected = inside[key] if inside[key].dim() == 3 else inside[key].transpose(1, 2).flatten(2)
        torch.testing.assert_close(value, expected, rtol=0, atol=1e-12)
    assert collected["blocks.1.attention.k"].shape == (24, 12, 2 * 8)


def test_padding_changes_nothing_of_what_is_collected() -> None:
    model = tiny("gpt2")
    real = torch.ones(4, 9, dtype=torch.bool)
    real[:, 6:] = False
    padded = collect(model, IDS[:4, :9].where(real, 0), ["blocks.1.resid_post"], rows=3, real=real)
    alone = collect(model, IDS[:4, :6], ["blocks.1.resid_post"])
    torch.testing.assert_close(padded["blocks.1.resid_post"][:, :6], alone["blocks.1.resid_post"], rtol=0, atol=1e-9)


def test_an_encoder_is_read_too() -> None:
    model = smallest("bert")
    assert collect(model, IDS[:2], ["blocks.0.resid_post"])["blocks.0.resid_post"].shape[:2] == (2, 12)


def test_a_probe_finds_what_is_there_and_nothing_else() -> None:
    rng = torch.Generator().manual_seed(1)
    labels = torch.randint(0, 4, IDS.shape, generator=rng)
    noise = torch.randn(*IDS.shape, 8, generator=rng, dtype=torch.float64)
    holds = noise.clone()
    holds[..., :4] += 8 * torch.nn.functional.one_hot(labels, 4)
    tokens = torch.nn.functional.one_hot(IDS, 40).double()
    probes = probe_values({"holds": holds, "noise": noise, "tokens": tokens}, IDS, labels)
    assert probes.keys == ["holds", "noise", "tokens"]
    assert probes.score_N[0] == 1
    # Nothing tells random labels, and only what holds the token tells those of the control task.
    assert probes.score_N[1:].max() < 0.5
    assert probes.shuffled_N.max() < 0.5
    assert probes.control_N[:2].max() < 0.5 < 0.9 < probes.control_N[2]
    assert probes.selectivity.argmax() == 0
    assert probes.selectivity[2] < -0.4
    assert probes.held_out_B.sum() == 6
    assert 0 < probes.baseline < 0.5


def test_the_score_is_that_of_the_texts_held_back() -> None:
    rng = torch.Generator().manual_seed(2)
    value = torch.randn(*IDS.shape, 6, generator=rng, dtype=torch.float64)
    labels = (value[..., 0] + value[..., 1] > 0).long()
    probes = probe_values({"x": value}, IDS, labels, held_out=0.5, seed=3)
    held = probes.held_out_B
    readout = LogisticRegression().fit(value[~held].flatten(0, 1), labels[~held].flatten())
    expected = (readout.predict(value[held].flatten(0, 1)) == labels[held].flatten()).double().mean()
    assert probes.score_N[0] == expected
    again = probe_values({"x": value}, IDS, labels, held_out=0.5, seed=3)
    assert torch.equal(again.control_N, probes.control_N)
    assert not torch.equal(probe_values({"x": value}, IDS, labels, seed=4).held_out_B, probes.held_out_B)


def test_labels_that_stand_for_none_count_nowhere() -> None:
    rng = torch.Generator().manual_seed(5)
    value = torch.randn(*IDS.shape, 6, generator=rng, dtype=torch.float64)
    labels = (value[..., 0] > 0).long()
    wrong = labels.clone()
    hidden = torch.rand(IDS.shape, generator=rng) < 0.5
    wrong[hidden] = IGNORED
    value[hidden] = 1e6
    assert probe_values({"x": value}, IDS, wrong).score_N[0] > 0.9
    numbers = torch.where(hidden, float("nan"), 3 * value[..., 0] - 1)
    assert probe_values({"x": value}, IDS, numbers, regression=RidgeRegression(penalty=1e-6)).score_N[0] > 0.999


def test_the_position_stands_where_it_is_added() -> None:
    """Positions are learned vectors here: before them nothing tells the place, behind them a line does."""
    model = tiny("gpt2")
    places = torch.arange(12).expand_as(IDS)
    probes = linear_probing(model, IDS, places, ["looked_up", "positioned", "blocks.0.resid_pre"], rows=8)
    assert probes.score_N[1:].min() > 0.8 > 0.3 > probes.score_N[0]
    numbers = linear_probing(model, IDS, places.double(), ["positioned"], regression=RidgeRegression())
    assert numbers.metric == "R squared"
    assert numbers.score_N[0] > 0.4 > 0.1 > max(numbers.baseline, float(numbers.shuffled_N[0]))


def test_the_token_before_comes_with_attention() -> None:
    model = tiny("gpt2")
    few = IDS % 4
    probes = linear_probing(model, few, previous(few), ["embedded", "blocks.1.resid_post"])
    assert probes.score_N[0] < 0.5
    assert probes.score_N[1] > probes.score_N[0]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"keep": ["blocks.7.resid_post"]}, "nothing is called"),
        ({"keep": ["blocks.0.attention.q"], "ids_BL": IDS[:0], "labels_BL": IDS[:0]}, "no text"),
        ({"held_out": 0.0}, "holds 0 back"),
        ({"held_out": 1.0}, "leaves 0"),
        ({"labels_BL": torch.full_like(IDS, IGNORED)}, "no label is left"),
    ],
)
def test_what_cannot_be_probed_is_refused(change, why: str) -> None:
    given = {"ids_BL": IDS, "labels_BL": IDS % 3, **change}
    with pytest.raises(UsageError, match=why):
        linear_probing(tiny("gpt2"), **given)


def test_what_has_no_features_of_tokens_is_refused() -> None:
    with pytest.raises(UsageError, match="no features of 12 tokens"):
        probe_values({"blocks.0.attention.pattern": torch.rand(24, 4, 12, 12)}, IDS, IDS)
    with pytest.raises(UsageError, match="and 0 values"):
        probe_values({}, IDS, IDS)
    with pytest.raises(UsageError, match="training mode"):
        linear_probing(tiny("gpt2").train(), IDS, IDS)
    with pytest.raises(UsageError, match="source and ids"):
        linear_probing(smallest("t5"), IDS, IDS)
