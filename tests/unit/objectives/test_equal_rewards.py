"""Answers that all earn the same: no advantage, no error, whatever the reward, the group and the objective."""

from collections.abc import Sequence

import pytest
import torch

from orrery.data.rows.prompts import Answered
from orrery.errors import DataError
from orrery.objectives._group_policy import group_advantages
from orrery.objectives.ppo import whitened
from orrery.objectives.rloo import left_out_advantages
from orrery.rewards import Reward
from orrery.training.rollouts import Judge
from orrery.training.step import accumulate
from rollout_toy import KINDS, PLAIN, world

SIZES = (2, 3, 5, 6, 7, 8, 12, 16, 64, 257)
VALUES = (0.0, 0.1, 0.3, -1.3, 3.9, 100.3, 1e-7, -1e-30, 16_777_217.3, 1e20, -3e38)


class Same(Reward):
    """The same for every answer."""

    def __init__(self, value: float) -> None:
        self.value = value

    def score(self, answers: Sequence[Answered]) -> list[float]:
        return [self.value] * len(answers)


@pytest.mark.parametrize("value", VALUES)
def test_equal_rewards_give_exactly_no_advantage(value):
    for size in SIZES:
        for dtype in (torch.float32, torch.float64):
            reward, group = torch.full((size,), value, dtype=dtype), torch.zeros(size, dtype=torch.long)
            for scaled in (True, False):
                assert group_advantages(reward, group, scaled=scaled).tolist() == [0.0] * size
            assert left_out_advantages(reward, group).tolist() == [0.0] * size
            everywhere = torch.ones(1, size, dtype=torch.bool)
            assert whitened(reward[None], everywhere).tolist() == [[0.0] * size]


@pytest.mark.parametrize("scale", [1e-12, 1e-7, 1e-4, 1e-2, 1.0, 1e4, 1e12])
def test_nearly_equal_and_very_large_rewards_give_advantages_that_add_up_to_nothing(scale):
    rng = torch.Generator().manual_seed(2)
    for size in SIZES:
        for middle in (0.0, 0.3, -100.3, 1e6):
            reward = (middle + scale * torch.randn(size, generator=rng).double()).float()
            group = torch.zeros(size, dtype=torch.long)
            for scaled in (True, False):
                advantages = group_advantages(reward, group, scaled=scaled)
                assert abs(float(advantages.double().sum())) <= 1e-6 * size * max(1.0, float(advantages.abs().max()))
            assert torch.isfinite(left_out_advantages(reward, group)).all()
            assert torch.isfinite(whitened(reward[None], torch.ones(1, size, dtype=torch.bool))).all()


@pytest.mark.parametrize("size", [64, 128, 1000])
def test_one_answer_that_is_a_little_better_than_many(size):
    """The deviation is then as small as what is added to it, which is no fault."""
    reward = torch.zeros(size)
    reward[0] = 0.11
    advantages = group_advantages(reward, torch.zeros(size, dtype=torch.long), scaled=True)
    wide = reward.double()
    assert advantages.double().tolist() == pytest.approx(
        ((wide - wide.mean()) / (wide.std() + 1e-4)).tolist(), rel=1e-6
    )


def test_noise_of_rounding_is_not_made_large():
    rng = torch.Generator().manual_seed(1)
    advantages = 0.3 + 1e-8 * torch.randn(4, 5, generator=rng)
    assert float(whitened(advantages, torch.ones(4, 5, dtype=torch.bool)).abs().max()) < 1e-2


@pytest.mark.parametrize("value", [0.0, 0.1, 0.3, -7.7, 100.3])
@pytest.mark.parametrize("kind", KINDS)
def test_a_step_on_answers_that_earn_the_same(kind, value):
    judged = Judge({"same": (Same(value), 1.0), "other": (Same(0.7), 0.3)})
    own = world(kind, double=False, judged=judged)
    learner = torch.nn.ModuleDict({"model": own.model})
    for step in range(2):
        batch = own.rollouts.batch(step)
        loss = accumulate(
            own.model, own.objective, batch, micro_batch=None, seed=(0, step), ranks=own.writer.ranks, precision=PLAIN,
            learner=learner,
        )  # fmt: skip
        assert abs(loss.loss) < float("inf")
        if kind in ("grpo", "dr_grpo", "dapo"):
            assert batch["advantages"].abs().max() == 0
    assert torch.equal(batch["reward"], batch["reward"][:1].expand_as(batch["reward"]))


@pytest.mark.parametrize("rewards", [[(3e38, 1.0), (3e38, 1.0)], [(1.0, 1e39)], [(1e300, 1e300)]])
def test_rewards_whose_sum_is_beyond_all_numbers_are_refused_by_the_prompt(rewards):
    judged = Judge({f"reward {n}": (Same(value), weight) for n, (value, weight) in enumerate(rewards)})
    own = world("grpo", double=False, judged=judged)
    with pytest.raises(DataError, match=r"sums.jsonl:\d: the rewards of an answer to this prompt add up to") as refused:
        own.rollouts.batch(0)
    assert "weight" in refused.value.hint
