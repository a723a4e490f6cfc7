"""A tiny decoder that answers sums, and what has it write rollouts, for the tests of learning from its own answers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from objectives_toy import tiny
from orrery.data.batches.rollouts import How, PromptRow, Rollouts
from orrery.data.batches.seeds import derive_seed
from orrery.data.rows.prompts import Answered, Prompt
from orrery.objectives import OBJECTIVES, Objective
from orrery.rewards import REWARDS, Reward
from orrery.text.tokenizer import Tokenizer
from orrery.text.train import train_tokenizer
from orrery.training.distributed import Alone
from orrery.training.precision import Precision
from orrery.training.rollouts import Judge, ModelWriter

PLAIN = Precision("float32", "plain", "cpu", 1)
KINDS = ("ppo", "grpo", "dr_grpo", "dapo", "rloo")
SUMS = [(3, 4), (10, 7), (2, 2), (9, 30)]


HOW = How(samples=3, max_new_tokens=5, minibatches=2, passes=2)


@dataclass
class World:
    """A model, an objective on it, and its rollouts."""

    model: nn.Module
    objective: Objective
    tokenizer: Tokenizer
    rollouts: Rollouts
    writer: ModelWriter


def sums_tokenizer() -> Tokenizer:
    return train_tokenizer("character", ["0123456789+="], None)


def prompts() -> list[Prompt]:
    rows = [{"prompt": f"{a}+{b}=", "answer": str(a + b)} for a, b in SUMS]
    return [Prompt(f"sums.jsonl:{line}", row["prompt"], row) for line, row in enumerate(rows, start=1)]


class Digits(Reward):
    """The sum of an answer's digits, of which few answers have the same."""

    def score(self, answers: Sequence[Answered]) -> list[float]:
        return [sum(int(letter) for letter in answer.text if letter.isdecimal()) / 10 for answer in answers]


def judge(*kinds: str | Mapping[str, Any]) -> Judge:
    rewards: dict[str, tuple[Reward, float]] = {"digits": (Digits(), 1.0)} if not kinds else {}
    for kind in kinds or ({"kind": "length", "tokens": 3, "weight": 0.5},):
        values = {"kind": kind} if isinstance(kind, str) else dict(kind)
        reward = REWARDS.find(values["kind"])
        settings = reward.Settings(**values)
        rewards[settings.label] = (reward.of(settings), settings.weight)
    return Judge(rewards)


def world(
    kind: str = "grpo",
    *,
    how: How | None = None,
    size: int = 6,
    double: bool = True,
    micro_batch: int | None = None,
    judged: Judge | None = None,
    model: nn.Module | None = None,
    **settings: Any,
) -> World:
    how, tokenizer = how or HOW, sums_tokenizer()
    if model is None:
        model = tiny("llama", tokenizer)
    model = model if double else model.float()
    objective = OBJECTIVES.find(kind)(**settings)
    objective.bind(model.spec, tokenizer)
    torch.manual_seed(derive_seed(1, "objective"))
    for module in objective.modules(model).values():
        module.double() if double else module.float()
    asked = [PromptRow(each, tuple(tokenizer.encode(each.text))) for each in prompts()]
    end = frozenset([tokenizer.special("end")])
    writer = ModelWriter(model, objective, tokenizer, end, judged or judge(), PLAIN, micro_batch, Alone())
    rollouts = Rollouts(asked, how, size, 5)
    rollouts.begin(writer)
    return World(model, objective, tokenizer, rollouts, writer)


@torch.no_grad()
def moved(model: nn.Module, size: float = 0.02, seed: int = 3) -> None:
    """Change every parameter a little, so that ratios are not 1."""
    rng = torch.Generator().manual_seed(seed)
    for parameter in model.parameters():
        parameter.add_(size * torch.randn(parameter.shape, generator=rng).to(parameter.dtype))


def stale(batch: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return a batch as a later step of its rollout gets it."""
    return {**batch, "fresh": torch.zeros_like(batch["fresh"])}
