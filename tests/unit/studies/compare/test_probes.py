"""The probes' texts ask for what they say, a right answer is counted as one, and every probe measures a model."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from orrery.errors import UsageError
from orrery.nn.cross_entropy import IGNORED
from orrery.studies.compare.budgets import Budget
from orrery.studies.compare.plan import ComparisonPlan, ProbeOptions
from orrery.studies.compare.probes import costs, learned
from orrery.studies.compare.probes.extrapolation import extrapolation, longer
from orrery.studies.compare.probes.subject import SMALL, ProbeSubject
from orrery.studies.compare.probes.table import PROBES, chosen
from orrery.studies.compare.probes.tasks import Copies, RecallPairs
from training_toy import toy_recipe

RNG = torch.Generator().manual_seed(0)


def test_each_key_asks_for_the_value_that_stood_behind_it():
    task = RecallPairs()
    batch = task.rows(5, 4, RNG)
    assert batch["ids"].shape == (5, task.length(4))
    for ids, targets in zip(batch["ids"].tolist(), batch["targets"].tolist(), strict=True):
        known = dict(zip(ids[:8:2], ids[1:8:2], strict=True))
        assert len(known) == 4
        assert set(known) == set(ids[8::2])
        assert all(value >= task.keys > key for key, value in known.items())
        for place, target in enumerate(targets):
            asked = place >= 8 and place % 2 == 0
            assert target == (known[ids[place]] if asked else IGNORED)


def test_a_copy_is_asked_for_from_the_mark_on():
    task = Copies()
    batch = task.rows(3, 6, RNG)
    ids_BL, targets_BL = batch["ids"], batch["targets"]
    assert ids_BL.shape == (3, task.length(6))
    assert (ids_BL[:, 6] == task.tokens).all()
    assert (ids_BL[:, :6] == ids_BL[:, 7:]).all()
    assert (targets_BL[:, 6:-1] == ids_BL[:, 7:]).all()
    assert (targets_BL[:, :6] == IGNORED).all()
    assert (targets_BL[:, -1] == IGNORED).all()


class Knowing:
    """Says the token that a rule gives, with some of the answers spoilt."""

    def __init__(self, batch, wrong=0):
        self.said = batch["targets"].clamp(min=0).clone()
        rows, places = torch.nonzero(batch["targets"] != IGNORED, as_tuple=True)
        self.said[rows[:wrong], places[:wrong]] += 1

    def logits(self, ids):
        return torch.nn.functional.one_hot(self.said, 64).float()


@pytest.mark.parametrize("wrong", [0, 3, 20])
def test_the_part_that_is_right_is_counted(wrong):
    batch = RecallPairs().rows(5, 4, RNG)
    assert learned.right(Knowing(batch, wrong), batch) == pytest.approx(1 - wrong / 20)


def subject(name="gru", held_back=()):
    base = toy_recipe(batches__length=8)
    plan = ComparisonPlan(base, (name,), 20_000, (Budget(1, "steps"),), (0, 1), probing=ProbeOptions(steps=2))
    return ProbeSubject(name, plan, Path(), 17, held_back)


def test_small_models_are_of_the_kind_and_the_size():
    for name in ("lstm", "transformer"):
        model = subject(name).small(32, 40, 0)
        assert abs(sum(p.numel() for p in model.parameters()) - SMALL) <= 0.1 * SMALL
        assert len(model.stack.blocks) == 2


@pytest.fixture
def cheap(monkeypatch):
    for module, name, value in (
        (learned, "ROWS", 2), (learned, "TESTED", 4), (learned, "RATES", (0.01,)),
        (costs, "LENGTHS", (4, 8)), (costs, "LONG", (4, 8, 16)), (costs, "TOKENS", 8), (costs, "WRITTEN", 1),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, value)


@pytest.mark.parametrize("name", [name for name in PROBES if name != "extrapolation"])
def test_every_probe_gives_a_curve_that_can_be_drawn(name, cheap):
    by_model = {model: PROBES[name].run(subject(model)) for model in ("gru", "transformer")}
    assert all(len(curve) >= 2 and all(np.isfinite(list(curve.values()))) for curve in by_model.values())
    assert "<svg" in PROBES[name].figure(by_model)


def test_keys_and_values_grow_and_a_state_stays(cheap):
    states = {name: list(costs.memory(subject(name)).values()) for name in ("gru", "transformer")}
    assert len(set(states["gru"])) == 1
    assert states["transformer"] == sorted(set(states["transformer"]))


@pytest.mark.parametrize("name", ["gru", "transformer"])
def test_memory_is_that_of_one_row_in_kilobytes(name, cheap):
    asked = subject(name)
    model = asked.whole(16).eval()
    for length, kilobytes in costs.memory(asked).items():
        _, session = model.start(torch.zeros(1, int(length), dtype=torch.long), int(length))
        assert kilobytes == session.bytes() / 1000


@pytest.mark.parametrize(
    ("words", "names"), [(None, tuple(PROBES)), ("none", ()), ("memory, recall", ("memory", "recall"))]
)
def test_probes_are_chosen_by_name(words, names):
    assert chosen(words) == names


@pytest.mark.parametrize("words", ["speed", "memory,memory"])
def test_what_is_no_probe_is_refused_with_the_list(words):
    with pytest.raises(UsageError) as caught:
        chosen(words)
    assert all(name in caught.value.hint for name in PROBES)


def test_loss_beyond_the_training_length_is_that_of_each_place(monkeypatch):
    trained = subject("transformer").whole(8).eval()
    monkeypatch.setattr(
        "orrery.studies.compare.probes.extrapolation.load", lambda *a, **k: SimpleNamespace(model=trained)
    )
    ids = np.random.default_rng(0).integers(0, 17, 200).astype(np.uint32)
    asked = subject("transformer", held_back=[ids])
    losses = extrapolation(asked)
    assert list(losses) == [str(4 * part) for part in range(1, 9)]
    whole = longer(asked, 32)
    read = np.concatenate([ids[-1:], ids])
    starts = [round(row * (len(read) - 33) / 5) for row in range(6)]
    by_place = []
    for start in starts:
        row = torch.from_numpy(read[start : start + 33].astype(np.int64))
        logp = whole.logits(row[None, :-1])[0].detach().double().log_softmax(-1)
        by_place.append([-float(logp[place, row[place + 1]]) / np.log(2) for place in range(32)])
    expected = np.array(by_place).mean(0).reshape(8, 4).mean(1)
    assert list(losses.values()) == pytest.approx(expected.tolist(), abs=1e-5)
    assert extrapolation(replace(asked, held_back=[ids[:20]])) == {}
