"""Rollouts: what a run learns from is a function of (seed, step), its state and the model; what is wrong is refused."""

import math
from dataclasses import replace

import pytest
import torch

from orrery.data.batches.rollouts import Rollouts
from orrery.errors import DataError, RunError, UsageError
from orrery.recipes.read import check_recipe
from orrery.rewards import Reward
from orrery.training.rollouts import Judge, refuse_lost_tokens, step_pieces
from rollout_toy import HOW, judge, moved, prompts, world


def same(a, b):
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def test_a_rollout_serves_its_steps_and_goes_on_from_what_was_saved():
    own = world("ppo")
    batches = []
    for step in range(8):
        if step == 2:
            state = own.rollouts.state()
        batches.append(own.rollouts.batch(step))
        if step == 3:
            assert own.rollouts.state() == {}
    again = world("ppo", model=own.model)
    moved(again.model)  # what is left of a rollout does not depend on the model any more
    again.rollouts.restore(state)
    assert all(same(again.rollouts.batch(step), batches[step]) for step in (2, 3))
    assert sorted(batches[0]["ids"].tolist() + batches[1]["ids"].tolist()) == sorted(
        batches[2]["ids"].tolist() + batches[3]["ids"].tolist()
    )
    assert not same(batches[0], batches[2])


def test_a_state_without_the_rollout_is_refused():
    own = world()
    with pytest.raises(RunError, match="step 1 goes on with rollout 0"):
        own.rollouts.batch(1)


def test_sources_need_a_model():
    own = world()
    with pytest.raises(UsageError, match="written by the model of a run"):
        Rollouts(own.rollouts.asked, HOW, 6, 0).batch(0)


def test_the_answers_are_those_of_the_engine_whatever_is_asked_beside_them():
    own = world()
    asked = own.rollouts.asked
    together = own.writer.answers(asked, [5, 6, 7, 8], 5, 1.0)
    alone = own.writer.answers(asked[2:3], [7], 5, 1.0)
    length = alone["ids"].shape[1]
    assert torch.equal(together["ids"][2, :length], alone["ids"][0])
    assert not own.model.training or own.model.training  # the mode comes back
    assert (
        together["written"].sum(1).tolist()
        == (together["real"].sum(1) - torch.tensor([len(a.ids) for a in asked])).tolist()
    )


def test_no_end_token_is_lost():
    own = world()
    rows = own.writer.answers(own.rollouts.asked * 8, range(32), 12, 1.0)
    end = own.tokenizer.special("end")
    finished = rows["finished"]
    assert 0 < int(finished.sum()) < 32
    lasts = rows["real"].sum(1) - 1
    assert (rows["ids"][torch.arange(32), lasts][finished] == end).all()
    assert rows["written"][torch.arange(32), lasts].all()
    answers = rows["written"].sum(1)
    refuse_lost_tokens(rows, answers, finished, [end])
    hidden = rows["written"] & (rows["ids"] != end)  # a mask by id
    with pytest.raises(RunError, match="end token is lost"):
        refuse_lost_tokens({**rows, "written": hidden}, answers, finished, [end])
    with pytest.raises(RunError, match="end token is lost"):
        refuse_lost_tokens(rows, answers, finished, [end + 1])


class Broken(Reward):
    """Not a number for the second prompt."""

    def __init__(self, value):
        self.value = value

    def score(self, answers):
        return [self.value if answer.prompt.where.endswith(":2") else 1.0 for answer in answers]


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_reward_that_is_no_number_is_refused_with_the_place_of_the_prompt(value):
    own = world(judged=Judge({"broken": (Broken(value), 1.0)}))
    with pytest.raises(DataError, match=r"sums\.jsonl:2: the reward broken of an answer to this prompt is"):
        own.writer.answers(own.rollouts.asked, [1, 2, 3, 4], 5, 1.0)


def test_a_reward_of_too_few_answers_is_refused():
    class Short(Reward):
        def score(self, answers):
            return [1.0]

    with pytest.raises(UsageError, match="gives 1 numbers for 12 answers"):
        world(judged=Judge({"short": (Short(), 1.0)})).rollouts.batch(0)


def test_a_group_of_one_has_nothing_to_be_compared_with():
    with pytest.raises(RunError, match="one answer"):
        world("rloo", how=replace(HOW, samples=1)).rollouts.batch(0)


def test_the_pieces_are_those_of_every_rank_and_step():
    pieces = [list(piece) for piece in step_pieces(8, 4, 1, 2)]
    assert pieces == [[n] for n in range(8)]
    assert [list(piece) for piece in step_pieces(6, 3, None, 2)] == [[0], [1, 2], [3], [4, 5]]


def test_weights_of_rewards_add_up():
    own = world(judged=judge("exact", {"kind": "length", "tokens": 2, "weight": 3.0}))
    batch = own.rollouts.batch(0)
    assert torch.allclose(batch["reward"], batch["rewards"] @ torch.tensor([1.0, 3.0]))
    assert own.rollouts.asked[0].prompt == prompts()[0]


RECIPE = {
    "name": "toy",
    "model": {"family": "llama"},
    "tokenizer": {"kind": "character"},
    "data": {"kind": "rollouts", "train": "addition"},
    "batches": {"length": 16, "size": 8},
    "objective": "grpo",
    "rewards": ["arithmetic"],
    "training": {"steps": 2, "optimizer": {"rate": 0.001}},
}


def test_a_recipe_needs_rewards_where_answers_are_judged():
    assert check_recipe(RECIPE, "toy").rewards[0].label == "arithmetic"
    for changed, message in (
        ({"rewards": []}, "rewards is missing"),
        ({"rewards": ["exact", "exact"]}, "two rewards are called exact"),
        ({"rewards": ["good"]}, "kind must be one of"),
        ({"rewards": [{"kind": "format", "pattern": "("}]}, "no regular expression"),
        ({"objective": "causal"}, "targets"),
        ({"data": {"kind": "rollouts", "train": "addition", "temperature": 0}}, "temperature"),
        ({"data": {"kind": "text", "train": "x"}, "objective": "causal"}, "leave rewards out"),
    ):
        with pytest.raises(UsageError, match=message):
            check_recipe({**RECIPE, **changed}, "toy")


def test_a_kernel_that_there_is_none_of_is_refused_before_anything_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORRERY_KERNEL", "nonsense")
    with pytest.raises(UsageError, match="nonsense"):
        world("grpo")
