"""Batches of answers that the trained model writes: which prompts, when, and how one rollout serves several steps."""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from safetensors.torch import load, save
from torch import Tensor

from orrery.data.batches.order import Shuffled
from orrery.data.batches.seeds import derive_seed
from orrery.data.rows.prompts import Prompt
from orrery.errors import RunError, UsageError


@dataclass(frozen=True)
class PromptRow:
    """A prompt and its token ids."""

    prompt: Prompt
    ids: tuple[int, ...]


@dataclass(frozen=True)
class How:
    """How prompts are answered, and how many steps are made of the answers.

    Attributes:
        samples: how many answers a prompt gets.
        max_new_tokens: the most tokens of an answer.
        temperature: divides the logits before an answer is drawn.
        minibatches: how many batches a rollout has.
        passes: how often a rollout is gone through.
    """

    samples: int
    max_new_tokens: int
    temperature: float = 1.0
    minibatches: int = 1
    passes: int = 1


@runtime_checkable
class Writer(Protocol):
    """The model of a run, as a source meets it that has it write."""

    def answers(
        self, prompts: Sequence[PromptRow], seeds: Sequence[int], max_new_tokens: int, temperature: float
    ) -> Mapping[str, Tensor]:
        """Return an answer to each prompt, with its reward, as the fields of a batch."""
        ...

    def observed(self, batch: Mapping[str, Tensor], size: int) -> Mapping[str, Tensor]:
        """Return a rollout with what the objective computes of it once; steps take ``size`` rows of it each."""
        ...

    def described(self) -> str:
        """Return in words how answers are written."""
        ...


class Rollouts:
    """The batches of a run that learns from its own answers.

    Rollout ``n`` serves the steps from ``n * passes * minibatches`` on. Its prompts, the seeds of its draws and the
    order of its rows in each pass follow from (seed, n); the answers follow from these and the model as it is then, so
    that what is left of a rollout is saved with the run.
    """

    def __init__(self, prompts: Sequence[PromptRow], how: How, size: int, seed: int) -> None:
        self.asked, self.how, self.size, self.seed = prompts, how, size, seed
        self.rows = size * how.minibatches
        self.steps = how.minibatches * how.passes
        self.order = Shuffled(len(prompts), seed)
        self._writer: Writer | None = None
        self._number, self._left, self._kept = -1, 0, dict[str, Tensor]()

    def begin(self, writer: Writer) -> None:
        """Take the model that answers."""
        self._writer = writer

    def batch(self, step: int) -> dict[str, Tensor]:
        """Return the batch of ``step``, from 0; the first step of a rollout writes it.

        Raises:
            RunError: it is a later step of a rollout, and the saved state has no such rollout.
            UsageError: there is no model yet.
        """
        number, place = divmod(step, self.steps)
        if place == 0 and number != self._number:
            self._kept, self._number = self._written(number), number
        if number != self._number:
            message = f"step {step} goes on with rollout {number}, and the checkpoint holds none of it"
            raise RunError(message, "resume from an earlier checkpoint: remove the newest folder of checkpoints/")
        self._left = self.steps - place - 1
        rows = self._rows(number, place)
        rows_of_batch = {name: tensor[rows] for name, tensor in self._kept.items()}
        return {**rows_of_batch, "fresh": torch.full((self.size,), place == 0)}

    def _rows(self, number: int, place: int) -> Tensor:
        """Return the rows of a step: the first pass goes in order, later ones in an order of their own."""
        turn, part = divmod(place, self.how.minibatches)
        order = np.arange(self.rows)
        if turn:
            order = np.random.default_rng([self.seed, number, turn]).permutation(self.rows)
        return torch.from_numpy(order[part * self.size : (part + 1) * self.size])

    def _written(self, number: int) -> dict[str, Tensor]:
        """Have the model answer the prompts of a rollout."""
        if self._writer is None:
            raise UsageError("rollouts are written by the model of a run, and none has begun", "use them in a run")
        samples = self.how.samples
        prompts = self.rows // samples
        places = self.order.items(number * prompts, (number + 1) * prompts)
        rows = [self.asked[place] for place in places for _ in range(samples)]
        seeds = [derive_seed(self.seed, "rollout", number, row) for row in range(self.rows)]
        answers = self._writer.answers(rows, seeds, self.how.max_new_tokens, self.how.temperature)
        group = torch.arange(prompts).repeat_interleave(samples)
        once = torch.full((self.rows,), self.steps == 1)
        return dict(self._writer.observed({**answers, "group": group, "once": once}, self.size))

    def state(self) -> dict[str, Any]:
        """Return the rollout that later steps go on with; nothing where all its steps are done."""
        if not self._left:
            return {}
        tensors = {name: tensor.contiguous() for name, tensor in self._kept.items()}
        return {"rollout": self._number, "tensors": base64.b64encode(save(tensors)).decode()}

    def restore(self, state: dict[str, Any]) -> None:
        """Take back what ``state`` returned."""
        if state:
            self._number = int(state["rollout"])
            self._kept = load(base64.b64decode(state["tensors"]))


class HeldBackAnswers:
    """The prompts held back, each answered once with the likeliest tokens, by the model as it is when it is asked."""

    def __init__(self, prompts: Sequence[PromptRow], how: How, size: int, seed: int) -> None:
        self.asked, self.how, self.size, self.seed = prompts, how, size, seed
        self._writer: Writer | None = None

    def __len__(self) -> int:
        return ceil(len(self.asked) / self.size)

    def begin(self, writer: Writer) -> None:
        """Take the model that answers."""
        self._writer = writer

    def batch(self, step: int) -> dict[str, Tensor]:
        """Return the answers of a batch of prompts.

        Raises:
            UsageError: there is no model yet.
        """
        if self._writer is None:
            raise UsageError("answers are written by the model of a run, and none has begun", "use them in a run")
        prompts = self.asked[step * self.size : (step + 1) * self.size]
        seeds = [derive_seed(self.seed, "held back", step, row) for row in range(len(prompts))]
        answers = self._writer.answers(prompts, seeds, self.how.max_new_tokens, 0.0)
        return {**answers, "group": torch.arange(len(prompts)), "fresh": torch.ones(len(prompts), dtype=torch.bool)}

    def state(self) -> dict[str, Any]:
        """Return nothing: answers are written again."""
        return {}

    def restore(self, state: dict[str, Any]) -> None:
        """Take back nothing."""
