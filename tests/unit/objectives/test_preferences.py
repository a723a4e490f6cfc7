"""Objectives over preferences: their definitions by hand, padding, splits, the reference, and runs that resume."""

import copy
import math
from typing import Any

import pytest
import torch
from torch import nn

from objectives_toy import bound, split_deviation, tokenizer_of
from orrery.data.batches.seeds import derive_seed
from orrery.data.batches.token_windows import PureSource
from orrery.errors import RunError, UsageError
from orrery.families import answering, load_family
from orrery.models.initialise import initialise
from orrery.nn import cross_entropy
from orrery.objectives import OBJECTIVES
from orrery.objectives._contracts import own_modules
from orrery.objectives._preferences import sigmoid_cost
from orrery.objectives._replies import token_log_probabilities
from orrery.objectives.orpo import log_odds
from orrery.training.distributed import Alone
from orrery.training.evaluate import Validation, evaluate
from orrery.training.loop import Parts
from orrery.training.precision import Precision
from orrery.training.step import accumulate
from orrery.tuning import describe
from orrery.tuning.lora import LoRA
from preference_toy import ROWS, decoder, fields, moved
from training_toy import run_weights, toy_recipe, toy_run

OVER_PAIRS = ("dpo", "dpo_norm", "ipo", "orpo", "simpo")
WITH_REFERENCE = ("dpo", "dpo_norm", "ipo", "kto")
ALL = (*OVER_PAIRS, "kto", "reward")


def rewarder(labels: int = 1) -> nn.Module:
    rules = load_family("llama")
    config = answering("llama", rules.TINY, "sequence", labels, (), "regression")
    from orrery.families import spec_of

    model = spec_of(rules, config).build().double().eval()
    initialise(model, depth=2, seed=3, std=0.2)
    return model


def learner(name: str, **settings: Any) -> tuple[Any, nn.Module]:
    """Return an objective and a model that has learnt something since the reference was made."""
    model = rewarder() if name == "reward" else decoder()
    objective = bound(name, model, tokenizer_of(None), **settings)
    own_modules(objective, model)
    return objective, moved(model)


def needed(objective: Any, batch: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {name: batch[name] for name in objective.needs}


def by_hand(model: nn.Module, prompt: list[int], reply: list[int]) -> float:
    """``log p(reply | prompt)``, token by token and without padding."""
    total = 0.0
    for place in range(len(reply)):
        logits = model.logits(torch.tensor([[*prompt, *reply[:place]]]))[0, -1]
        total += float(logits.log_softmax(-1)[reply[place]])
    return total


def s(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def expected(name: str, model: nn.Module, reference: nn.Module, beta: float) -> float:
    """The definition of each loss over ROWS, number by number."""
    total = 0.0
    for (prompt, chosen), (_, rejected) in ROWS:
        w, l = (by_hand(model, prompt, reply) for reply in (chosen, rejected))  # noqa: E741 - as in the papers
        h = [by_hand(model, prompt, y) - by_hand(reference, prompt, y) for y in (chosen, rejected)]
        mean = [w / len(chosen), l / len(rejected)]
        mean_h = [h[0] / len(chosen), h[1] / len(rejected)]
        odds = [m - math.log(1 - math.exp(m)) for m in mean]
        total += {
            "dpo": -math.log(s(beta * (h[0] - h[1]))),
            "dpo_norm": -math.log(s(beta * (mean_h[0] - mean_h[1]))),
            "ipo": (mean_h[0] - mean_h[1] - 1 / (2 * beta)) ** 2,
            "simpo": -math.log(s(beta * (mean[0] - mean[1]) - 0.5)),
            "orpo": -beta * math.log(s(odds[0] - odds[1])),
        }[name]
    return total / len(ROWS)


@torch.no_grad()
@pytest.mark.parametrize("name", OVER_PAIRS)
def test_the_loss_is_its_definition(name):
    objective, model = learner(name, beta=0.7)
    reference = getattr(objective, "reference", None)
    batch = needed(objective, fields())
    terms = objective.loss(model, batch)
    loss = float(sum(t.weight * t.sum / objective.counts(batch)[n] for n, t in terms.items()))
    if name == "orpo":
        said = [(p + c) for (p, c), _ in ROWS]
        loss -= -sum(by_hand(model, row[:1], row[1:]) for row in said) / sum(len(row) - 1 for row in said)
    assert loss == pytest.approx(expected(name, model, reference.model if reference else model, 0.7), abs=1e-9)


@torch.no_grad()
def test_kto_is_its_definition():
    objective, model = learner("kto", beta=0.7, desirable=1.3, undesirable=0.6)
    seconds = [ROWS[-1][0][1], *(row[0][1] for row in ROWS[:-1])]
    rows = [((p, c), (p, o)) for ((p, c), _), o in zip(ROWS, seconds, strict=True)]
    batch = needed(objective, fields(rows))
    h = [by_hand(model, p, y) - by_hand(objective.reference.model, p, y) for (p, y), _ in rows]
    z = max(0.0, sum(by_hand(model, p, y) - by_hand(objective.reference.model, p, y) for _, (p, y) in rows) / 4)
    assert z != 0.0
    good = batch["desirable"].tolist()
    wanted = sum(
        1.3 * (1 - s(0.7 * (x - z))) if g else 0.6 * (1 - s(0.7 * (z - x))) for x, g in zip(h, good, strict=True)
    )
    terms = objective.loss(model, batch)
    assert float(terms["value"].sum) == pytest.approx(wanted, abs=1e-9)
    assert terms["value"].coupled
    assert objective.counts(batch)["reward_chosen"] == sum(good) == 3


@torch.no_grad()
def test_the_reward_loss_is_its_definition():
    objective, model = learner("reward", centre=0.3)
    batch = {**needed(objective, fields()), "margin": torch.tensor([0.0, 0.5, -0.2, 1.0])}
    rewards = [[float(model.logits(torch.tensor([p + y]), head="sequence")) for p, y in row] for row in ROWS]
    wanted = sum(-math.log(s(c - r - m)) for (c, r), m in zip(rewards, batch["margin"].tolist(), strict=True))
    terms = objective.loss(model, batch)
    assert float(terms["preference"].sum) == pytest.approx(wanted, abs=1e-6)
    assert float(terms["centre"].sum) == pytest.approx(sum((c + r) ** 2 for c, r in rewards), abs=1e-6)
    assert terms["centre"].weight == 0.3
    assert int(terms["reward_accuracy"].sum) == sum(c > r for c, r in rewards)


@torch.no_grad()
@pytest.mark.parametrize("name", ALL)
def test_padding_counts_for_nothing(name):
    objective, model = learner(name)
    narrow, wide = needed(objective, fields()), needed(objective, fields(width=14))
    wide["ids"] = torch.where(wide["real"], wide["ids"], 17)
    first, second = objective.loss(model, narrow), objective.loss(model, wide)
    assert objective.counts(narrow) == objective.counts(wide)
    for key in first:
        torch.testing.assert_close(first[key].sum, second[key].sum, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", [name for name in ALL if name != "kto"])
def test_a_batch_in_pieces_of_one_pair_has_the_same_gradient(name):
    model = rewarder() if name == "reward" else decoder()
    objective = bound(name, model, tokenizer_of(None))
    assert split_deviation(model, objective, needed(objective, fields())) < 1e-9


def test_kto_is_not_split():
    objective, model = learner("kto")
    precision = Precision("float32", "plain", "cpu", 1)
    with pytest.raises(UsageError, match="'value' couples the examples"):
        accumulate(
            model,
            objective,
            needed(objective, fields()),
            micro_batch=2,
            seed=(0, 0),
            ranks=Alone(),
            precision=precision,
        )


@torch.no_grad()
def test_before_the_first_step_every_pair_costs_log_2():
    model = decoder()
    objective = bound("dpo", model, tokenizer_of(None))
    own_modules(objective, model)
    terms = objective.loss(model, needed(objective, fields()))
    assert float(terms["preference"].sum) == len(ROWS) * math.log(2)
    assert float(terms["kl"].sum) == float(terms["reward_chosen"].sum) == 0.0
    smoothed = float(sigmoid_cost(torch.tensor(0.3), 0.2))
    assert smoothed == pytest.approx(-0.8 * math.log(s(0.3)) - 0.2 * math.log(s(-0.3)), abs=1e-6)


def test_log_odds_of_what_is_certain_are_finite_and_have_a_gradient():
    log_p = torch.tensor([0.0, -1e-9, -0.5, -0.7, -30.0], dtype=torch.float64, requires_grad=True)
    odds = log_odds(log_p)
    assert bool(odds.isfinite().all())
    odds.sum().backward()
    assert bool(log_p.grad.isfinite().all())
    assert float(odds[2].detach()) == pytest.approx(-0.5 - math.log(1 - math.exp(-0.5)), abs=1e-12)


@torch.no_grad()
def test_many_logits_are_computed_in_pieces(monkeypatch):
    model, batch = decoder(), fields()
    whole = token_log_probabilities(model, batch)
    monkeypatch.setattr(cross_entropy, "LOGITS_AT_ONCE", 700)
    torch.testing.assert_close(token_log_probabilities(model, batch), whole, rtol=0, atol=1e-12)


def test_pieces_have_the_same_gradient(monkeypatch):
    model, batch = decoder(), fields()
    gradients_by_size = []
    for most in (2**22, 700):
        monkeypatch.setattr(cross_entropy, "LOGITS_AT_ONCE", most)
        model.zero_grad()
        token_log_probabilities(model, batch).square().sum().backward()
        gradients_by_size.append({name: p.grad.clone() for name, p in model.named_parameters()})
    assert all(
        torch.allclose(gradients_by_size[0][name], gradients_by_size[1][name], rtol=1e-9, atol=1e-12)
        for name in gradients_by_size[0]
    )


@pytest.mark.parametrize("name", WITH_REFERENCE)
def test_a_reference_that_has_changed_is_refused(name):
    objective, _ = learner(name)
    objective.check()
    weight = next(iter(objective.reference.model.parameters()))
    assert not weight.requires_grad
    with torch.no_grad():
        weight.view(-1)[0] += 1e-6
    with pytest.raises(RunError, match="reference model"):
        objective.check()


def test_a_reference_beside_an_adapter_shares_the_frozen_weights():
    model = LoRA(rank=2).apply(decoder())
    objective = bound("dpo", model, tokenizer_of(None))
    own_modules(objective, model)
    frozen = {p.data_ptr() for p in model.parameters() if not p.requires_grad}
    own = [p for p in objective.reference.model.parameters() if p.data_ptr() not in frozen]
    assert sum(p.numel() for p in own) == sum(p.numel() for p in model.parameters() if p.requires_grad)
    moved(model, 0.5)
    objective.check()
    assert float(objective.loss(model, needed(objective, fields()))["kl"].sum.detach()) > 0


def test_what_is_no_decoder_and_what_has_no_reward_is_refused():
    for name in (*OVER_PAIRS, "kto"):
        with pytest.raises(UsageError, match=f"the objective {name} needs a decoder"):
            bound(name, load_family("bert").spec(load_family("bert").TINY).build(), None)
    with pytest.raises(UsageError, match="trains a head sequence with one number"):
        bound("reward", decoder(), None)
    with pytest.raises(UsageError, match="trains a head sequence with one number"):
        bound("reward", rewarder(labels=2), None)


class Pairs(PureSource):
    """The rows above in an order of the step's own."""

    def __init__(self, needs, seed=0):
        self.needs, self.seed = needs, seed

    def batch(self, step):
        rng = torch.Generator().manual_seed(derive_seed(self.seed, step) % 2**31)
        order = torch.randperm(len(ROWS), generator=rng).tolist()
        batch = fields([ROWS[number] for number in order])
        return {name: batch[name] for name in self.needs}


def parts(name: str, reference: Any = None) -> Parts:
    model = (rewarder() if name == "reward" else decoder()).float()
    objective = bound(name, model, tokenizer_of(None))
    torch.manual_seed(1)
    own = own_modules(objective, model)
    if reference is not None:
        reference(objective)
    held_back = Validation(Pairs(objective.needs, 99), 2, objective.evaluated(), inputs=model.spec.inputs)
    return Parts(model, objective, Pairs(objective.needs), held_back, describe, modules=own, inputs=model.spec.inputs)


CONSTANT = {"training__schedule": {"kind": "constant"}, "checkpoints__every": 2, "training__micro_batch": None}


@pytest.mark.parametrize("name", ["dpo", "kto", "reward"])
def test_stopped_and_resumed_is_the_uninterrupted_run(name, tmp_path):
    toy_run(tmp_path / "whole", toy_recipe(**CONSTANT, training__steps=4), parts(name))
    for steps in (2, 4):
        toy_run(tmp_path / "parts", toy_recipe(**CONSTANT, training__steps=steps), parts(name), resume=True)
    whole, resumed = run_weights(tmp_path / "whole"), run_weights(tmp_path / "parts")
    assert whole.keys() == resumed.keys()
    assert all(torch.equal(whole[key], resumed[key]) for key in whole)
    assert any("digest" in key for _, key in whole) == (name != "reward")


def test_a_run_whose_reference_changes_saves_nothing(tmp_path):
    def harmed(objective):
        with torch.no_grad():
            next(iter(objective.reference.model.parameters())).mul_(1.01)

    with pytest.raises(RunError, match="reference model"):
        toy_run(tmp_path / "run", toy_recipe(**CONSTANT, training__steps=4), parts("dpo", harmed))
    assert not list((tmp_path / "run").rglob("step-*"))


@pytest.mark.parametrize("name", ALL)
def test_every_metric_that_it_names_is_measured(name):
    made = parts(name)
    measures = evaluate(made.model, made.validation, Precision("float32", "plain", "cpu", 1), Alone(), lambda: False)
    assert set(measures) == {f"val/{metric}" for metric in made.objective.metrics}
    assert all(math.isfinite(value) for value in measures.values())
    terms = made.objective.loss(made.model, made.source.batch(0))
    assert set(terms) == set(made.objective.counts(made.source.batch(0)))
    assert set(made.objective.reports) <= set(terms)


def test_every_objective_over_preferences_is_held_to_these():
    theirs = {"ids", "real"}
    own = [
        n
        for n in OBJECTIVES.names()
        if {"reply"} & set(OBJECTIVES.find(n).needs) or "margin" in OBJECTIVES.find(n).needs
    ]
    assert set(own) == set(ALL)
    assert all(theirs <= set(OBJECTIVES.find(name).needs) for name in own)
    assert copy.copy(OBJECTIVES.find("dpo")()).evaluated()
