"""Learning from one's own answers: the laws of each objective, and that each check of them fires."""

import math
from dataclasses import replace

import pytest
import torch

from orrery.errors import RunError, UsageError
from orrery.laws.accumulation import OneOf
from orrery.objectives._group_policy import group_advantages
from orrery.objectives._policy import kl_estimates, refuse_unnormalised
from orrery.objectives.ppo import gae, last, whitened
from orrery.objectives.rloo import left_out_advantages
from orrery.training.step import accumulate
from rollout_toy import HOW, KINDS, PLAIN, moved, stale, world


def gradients(own, batch, micro_batch=None, ranks=None):
    learner = torch.nn.ModuleDict({"model": own.model})
    if hasattr(own.objective, "value") and own.objective.value is not None:
        learner["value"] = own.objective.value
    learner.zero_grad()
    how = {"micro_batch": micro_batch, "seed": (0, 0), "ranks": ranks or OneOf(0, 1), "learner": learner}
    loss = accumulate(own.model, own.objective, batch, precision=PLAIN, **how)
    return loss, [p.grad.clone() if p.grad is not None else torch.zeros_like(p) for p in learner.parameters()]


@pytest.mark.parametrize("kind", KINDS)
def test_any_split_of_a_batch_gives_the_same_gradient(kind):
    own = world(kind)
    own.rollouts.batch(0)
    moved(own.model, 0.003)
    batch = own.rollouts.batch(1)
    whole_loss, whole = gradients(own, batch)
    for size in (1, 4):
        loss, split = gradients(own, batch, size)
        assert abs(loss.loss - whole_loss.loss) < 1e-9
        assert loss.means.keys() == set(own.objective.reports)
        assert all(abs(loss.means[name] - whole_loss.means[name]) < 1e-9 for name in loss.means)
        assert max(float((a - b).abs().max()) for a, b in zip(whole, split, strict=True)) < 1e-9
    shares = [gradients(own, batch, 2, OneOf(rank, 2))[1] for rank in range(2)]
    assert max(float((a + b - c).abs().max()) for a, b, c in zip(*shares, whole, strict=True)) < 1e-9
    assert max(float(a.abs().max()) for a in whole) > 1e-4


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("double", [True, False])
def test_the_ratio_of_the_first_step_is_one_to_the_last_bit(kind, double):
    own = world(kind, double=double, micro_batch=4)
    loss, _ = gradients(own, own.rollouts.batch(0), 4)
    assert loss.means["ratio"] == pytest.approx(1, abs=1e-7)
    assert loss.means["clipped"] == 0
    assert abs(loss.means["kl_k1"]) < 1e-6


def test_a_ratio_that_is_not_one_stops_the_first_step():
    own = world("grpo")
    batch = own.rollouts.batch(0)
    moved(own.model, 1e-6)
    with pytest.raises(RunError, match="ratio of the first step on a rollout differs from 1"):
        own.objective.loss(own.model, batch)
    own.objective.loss(own.model, stale(batch))


def test_log_probabilities_that_are_not_those_of_the_draw_stop_the_run():
    own = world("grpo")
    answers = own.writer.answers(own.rollouts.asked, [1, 2, 3, 4], 5, 1.0)
    assert own.writer.observed({**answers, "group": torch.arange(4)}, 4)["old"].abs().max() > 0
    moved(own.model, 1e-4)
    with pytest.raises(RunError, match="log probabilities of a rollout and of the trainer differ"):
        own.writer.observed({**answers, "group": torch.arange(4)}, 4)


@pytest.mark.parametrize("kind", ["grpo", "dr_grpo", "dapo"])
def test_the_only_step_of_a_rollout_learns_as_if_what_the_model_said_had_been_kept(kind):
    own = world(kind, how=replace(HOW, minibatches=1, passes=1, temperature=0.7))
    batch = own.rollouts.batch(0)
    assert "old" not in batch
    kept = {**batch, "once": torch.zeros_like(batch["once"])}
    with torch.no_grad():
        kept |= own.objective.observe(own.model, kept)
    assert torch.equal(kept["reference"], batch["reference"])
    (loss, gradient), (kept_loss, kept_gradient) = (gradients(own, one, None) for one in (batch, kept))
    assert loss.means == kept_loss.means
    assert all(torch.equal(a, b) for a, b in zip(gradient, kept_gradient, strict=True))
    moved(own.model, 1e-4)
    with pytest.raises(RunError, match="log probabilities of a rollout and of the trainer differ"):
        own.objective.loss(own.model, batch)


def test_the_draw_at_a_temperature_is_what_is_learned():
    own = world("grpo", how=replace(HOW, temperature=0.5))
    batch = own.rollouts.batch(0)
    hot = torch.log_softmax(own.model.logits(batch["ids"], real=batch["real"]) / 0.5, -1)[:, :-1]
    chosen = hot.gather(-1, batch["ids"][:, 1:, None])[..., 0] * batch["written"][:, 1:]
    torch.testing.assert_close(batch["old"][:, 1:], chosen, atol=1e-9, rtol=0)
    assert float((batch["old"] - batch["scores"]).abs().max()) > 0.01


@pytest.mark.parametrize("kind", KINDS)
def test_a_reference_that_has_changed_stops_the_run(kind):
    own = world(kind)
    with torch.no_grad():
        next(own.objective.reference.parameters()).view(-1)[0].add_(1e-7)
    fresh = world(kind, model=own.model)
    fresh.objective.check()
    moved(own.model)
    fresh.objective.check()
    with torch.no_grad():
        next(fresh.objective.reference.parameters()).view(-1)[0].add_(1e-7)
    with pytest.raises(RunError, match="reference model is not the one"):
        fresh.objective.check()


def test_the_reference_learns_nothing_and_keeps_its_mode():
    own = world("ppo")
    assert not any(parameter.requires_grad for parameter in own.objective.reference.parameters())
    assert not own.objective.reference.train().model.training


@pytest.mark.parametrize("kind", KINDS)
def test_dropout_is_refused(kind):
    from orrery.models.dropout import with_dropout

    own = world(kind)
    with pytest.raises(UsageError, match="dropout"):
        own.objective.bind(with_dropout(own.model.spec, 0.1), own.tokenizer)


def test_what_is_no_decoder_is_refused():
    from objectives_toy import bound, tiny, tokenizer_of

    for kind, more in (("grpo", {}), ("distillation", {"teacher": "it"})):
        for family in ("bert", "t5"):
            with pytest.raises(UsageError, match=f"the objective {kind} needs a decoder, this model is none") as error:
                bound(kind, tiny(family, tokenizer_of(family)), tokenizer_of(family), **more)
            assert error.value.hint.startswith("begin from a decoder")


def test_estimates_of_the_divergence():
    torch.manual_seed(0)
    p, q = torch.randn(2, 50).double().log_softmax(-1)
    k1, k2, k3 = kl_estimates(p, q)
    exact = float((p.exp() * (p - q)).sum())
    assert float((p.exp() * k1).sum()) == pytest.approx(exact)
    assert float((p.exp() * k3).sum()) == pytest.approx(exact)
    assert (k2 >= 0).all()
    assert (k3 >= 0).all()
    near = p.float() + 1e-7 * torch.randn(50)
    kl_estimates(p.float(), near)


def test_a_divergence_below_zero_stops_the_run(monkeypatch):
    monkeypatch.setattr(torch.Tensor, "expm1", lambda x: x - 0.1)
    with pytest.raises(RunError, match="k3"):
        kl_estimates(torch.zeros(2), torch.ones(2))


def test_group_advantages_are_normalised_in_each_group():
    reward, group = torch.tensor([1.0, 0.0, 1.0, 5.0, 5.0, 5.0]), torch.tensor([0, 0, 0, 1, 1, 1])
    advantages = group_advantages(reward, group, scaled=True)
    assert float(advantages[:3].std()) == pytest.approx(1, abs=1e-3)
    assert advantages.sum() == pytest.approx(0, abs=1e-6)
    assert advantages[3:].tolist() == [0, 0, 0]
    assert group_advantages(reward, group, scaled=False)[:3].tolist() == pytest.approx([1 / 3, -2 / 3, 1 / 3])


@pytest.mark.parametrize("values", [[0.0, 0.1, 1.0], [5.0, -5.0, 0.0], [math.nan, 1.0]])
def test_advantages_that_are_not_normalised_stop_the_run(values):
    with pytest.raises(RunError, match="should be 0 and their scale 1"):
        refuse_unnormalised(torch.tensor(values), "a test")


def test_left_out_advantages():
    reward, group = torch.tensor([1.0, 0.0, 2.0, 7.0, 3.0]), torch.tensor([0, 0, 0, 1, 1])
    assert left_out_advantages(reward, group).tolist() == pytest.approx([0.0, -1.5, 1.5, 4.0, -4.0])
    with pytest.raises(RunError, match="one answer"):
        left_out_advantages(reward[:1], group[:1])


def reference_ppo(own, batch):
    """Return PPO's loss and advantages, written from the papers with loops over rows and tokens."""
    objective, losses, values, advantages = own.objective, [], [], []
    rewards, spans = [], []
    for row in range(len(batch["ids"])):
        places = [t for t in range(batch["ids"].shape[1]) if batch["written"][row, t]]
        spans.append(places)
        reward = [-0.05 * float(batch["old"][row, t] - batch["reference"][row, t]) for t in places]
        reward[-1] += float(batch["reward"][row])
        rewards.append(reward)
        value = [float(batch["values"][row, t]) for t in places]
        running, advantages_of_row = 0.0, [0.0] * len(places)
        for k in reversed(range(len(places))):
            following = value[k + 1] if k + 1 < len(places) else 0.0
            running = reward[k] + 0.9 * following - value[k] + 0.9 * 0.8 * running
            advantages_of_row[k] = running
        values.append(value)
        advantages.append(advantages_of_row)
    flat = torch.tensor([x for advantages_of_row in advantages for x in advantages_of_row], dtype=torch.float64)
    mean, scale = flat.mean(), (flat.var() + 1e-8).sqrt()
    logits = own.model.logits(batch["ids"], real=batch["real"])
    hidden = own.model.hidden(batch["ids"], real=batch["real"])
    count = sum(map(len, spans))
    policy = value_error = entropies = 0.0
    for row, places in enumerate(spans):
        for k, t in enumerate(places):
            log_probs = logits[row, t - 1].log_softmax(-1)
            ratio = (log_probs[batch["ids"][row, t]] - batch["old"][row, t]).exp()
            advantage = (advantages[row][k] - mean) / scale
            policy = policy - torch.minimum(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage)
            entropies = entropies - (log_probs.exp() * log_probs).sum()
            value = objective.value(hidden[row, t - 1])[0]
            goal, before = advantages[row][k] + values[row][k], values[row][k]
            clipped = before + (value - before).clamp(-0.2, 0.2)
            value_error = value_error + torch.maximum((value - goal) ** 2, (clipped - goal) ** 2) / 2
    losses = policy / count + 0.1 * value_error / count - 0.01 * entropies / count
    return losses


def test_ppo_is_what_the_papers_say():
    own = world("ppo", how=replace(HOW, minibatches=1), discount=0.9, trace=0.8, entropy_weight=0.01)
    with torch.no_grad():
        own.objective.value.weight.normal_()
    moved(own.objective.reference.model, 0.05, seed=9)
    batch = own.rollouts.batch(0)
    moved(own.model, 0.05)
    moved(own.objective.value, 0.1)
    batch = stale(batch)
    expected = reference_ppo(own, batch)
    result, gradient = gradients(own, batch)
    assert result.loss == pytest.approx(float(expected.detach()), abs=1e-9)
    assert result.means["clipped"] > 0
    learner = [*own.model.parameters(), *own.objective.value.parameters()]
    wanted = torch.autograd.grad(expected, learner, allow_unused=True)
    for a, b in zip(gradient, wanted, strict=True):
        torch.testing.assert_close(a, torch.zeros_like(a) if b is None else b, atol=1e-9, rtol=1e-9)
    kept = batch["advantages"][batch["written"]].double()
    assert float(kept.mean()) == pytest.approx(0, abs=1e-6)
    assert float(kept.std()) == pytest.approx(1, abs=1e-4)
    own.objective.low = 0.9  # the comparison fails where one number differs
    assert gradients(own, batch)[0].loss != pytest.approx(float(expected.detach()), abs=1e-9)


def test_whitening_and_the_estimate_of_advantages():
    written = torch.tensor([[False, True, True, True], [False, False, True, False]])
    assert last(written).tolist() == [[False, False, False, True], [False, False, True, False]]
    rewards = torch.tensor([[9.0, 0, 0, 1], [9, 9, 2, 9]]) * written
    plain = gae(rewards, torch.zeros(2, 4), written, 1.0, 1.0)
    assert plain.tolist() == [[0, 1, 1, 1], [0, 0, 2, 0]]
    values = whitened(plain, written)
    assert values[~written].tolist() == [0.0] * 4
    assert float(values[written].mean()) == pytest.approx(0, abs=1e-6)


def test_the_weight_of_the_divergence_is_led_to_its_goal():
    from orrery.objectives.ppo import AdaptiveKl

    own = world("ppo", kl=AdaptiveKl(weight=0.2, target=6.0, horizon=100.0))
    own.objective.control.follow(60.0, 10)
    assert float(own.objective.control.weight) == pytest.approx(0.2 * (1 + 0.2 * 0.1))
    own.objective.control.follow(0.0, 10)
    assert float(own.objective.control.weight) == pytest.approx(0.2 * 1.02 * 0.98)
    fixed = world("ppo")
    fixed.objective.control.follow(60.0, 10)
    assert float(fixed.objective.control.weight) == 0.05


def test_kinds_differ_in_how_they_average():
    losses = {}
    for kind in ("grpo", "dapo", "dr_grpo"):
        own = world(kind, clip_higher=0.2, beta=0.1)
        batch = own.rollouts.batch(0)
        moved(own.model)
        losses[kind] = gradients(own, stale(batch))[0]
    assert len({round(loss.loss, 9) for loss in losses.values()}) == 3
    assert len({round(loss.means["kl_k3"], 12) for loss in losses.values()}) == 1


def test_the_batch_says_how_the_first_step_is_computed():
    own = world("grpo", how=replace(HOW, passes=3))
    fresh = [bool(own.rollouts.batch(step)["fresh"].all()) for step in range(7)]
    assert fresh == [True, False, False, False, False, False, True]
