"""Rollouts: the model that is trained answers prompts, its answers are judged, and what is known of them is kept."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from math import isfinite
from typing import Any, final

import torch
from torch import Tensor

from orrery.data.batches.rollouts import PromptRow
from orrery.data.rows.prompts import Answered
from orrery.errors import DataError, RunError, UsageError
from orrery.generation.compiled_step import check_kernel, described, stepping, why_not
from orrery.generation.engine import Engine
from orrery.generation.requests import Answering, Request
from orrery.generation.row import Limits
from orrery.generation.samplers import sampler
from orrery.kernels.readiness import ready
from orrery.models.inputs import Batch
from orrery.objectives import Objective
from orrery.objectives._contracts import credited, observed
from orrery.rewards import Reward
from orrery.settings import step_kernel
from orrery.text.tokenizer import Tokenizer
from orrery.training.distributed import Ranks
from orrery.training.pieces import pieces
from orrery.training.precision import Precision
from orrery.training.step import take, to_device

AT_ONCE = 256
"""Answers that are written together at most."""
LARGEST = torch.finfo(torch.float32).max
"""What a reward is at most."""


@dataclass(frozen=True)
class Judge:
    """Rewards with their weights, by name."""

    rewards: Mapping[str, tuple[Reward, float]]

    def __call__(self, answers: Sequence[Answered]) -> list[list[float]]:
        """Return what each reward says of each answer.

        Raises:
            DataError: a reward is no finite number; the prompt's place is named.
        """
        columns = [self._column(name, reward, answers) for name, (reward, _) in self.rewards.items()]
        return [list(row) for row in zip(*columns, strict=True)]

    def totals(self, prompts: Sequence[PromptRow], judged: Sequence[Sequence[float]]) -> list[float]:
        """Return the weighted sum of the rewards of each answer: equal rewards add up to equal sums.

        A product of matrices would round rows at different places differently.

        Raises:
            DataError: a sum is beyond the numbers of float32.
        """
        sums = [sum(value * weight for value, weight in zip(row, self.weights, strict=True)) for row in judged]
        for own, total in zip(prompts, sums, strict=True):
            if not abs(total) <= LARGEST:
                message = f"{own.prompt.where}: the rewards of an answer to this prompt add up to {total:g}"
                raise DataError(message, "give smaller weights, or rewards that are smaller numbers")
        return sums

    @property
    def weights(self) -> list[float]:
        """The weight of each."""
        return [weight for _, weight in self.rewards.values()]

    @property
    def fingerprint(self) -> str:
        """What a resumed run must find again."""
        return "\n".join(f"{name} {own.fingerprint}" for name, (own, _) in self.rewards.items() if own.fingerprint)

    def _column(self, name: str, reward: Reward, answers: Sequence[Answered]) -> list[float]:
        values = [float(value) for value in reward.score(answers)]
        if len(values) != len(answers):
            message = f"the reward {name} gives {len(values)} numbers for {len(answers)} answers"
            raise UsageError(message, "score() returns one number for each answer")
        for answered, value in zip(answers, values, strict=True):
            if not isfinite(value):
                message = f"{answered.prompt.where}: the reward {name} of an answer to this prompt is {value:g}"
                raise DataError(message, "a reward is a finite number: mend what computes it, or take the prompt out")
        return values


@final
class ModelWriter:
    """The model of a run as what answers prompts: see `orrery.data.batches.rollouts.Writer`.

    Every rank writes all answers, so that all have the same batch without a message between them.
    """

    def __init__(
        self,
        model: Any,
        objective: Objective,
        tokenizer: Tokenizer,
        ends: Collection[int],
        judge: Judge,
        precision: Precision,
        micro_batch: int | None,
        ranks: Ranks,
    ) -> None:
        self.model, self.objective, self.tokenizer, self.ends = model, objective, tokenizer, frozenset(ends)
        self.judge, self.precision, self.micro_batch, self.ranks = judge, precision, micro_batch, ranks
        check_kernel(step_kernel())

    def answers(
        self, prompt_rows: Sequence[PromptRow], seeds: Sequence[int], max_new_tokens: int, temperature: float
    ) -> dict[str, Tensor]:
        """Return an answer to each prompt, with its reward, as the fields of a batch.

        Raises:
            DataError: a reward is no finite number.
        """
        answerings = self._written(prompt_rows, seeds, max_new_tokens, temperature)
        rows = rows_of_answers(prompt_rows, answerings, self.ends)
        finished = rows["finished"].tolist()
        judged = self.judge(
            [
                Answered(own.prompt, answer.result().text, len(answer.written), ended)
                for own, answer, ended in zip(prompt_rows, answerings, finished, strict=True)
            ]
        )
        rewards_BR = torch.tensor(judged, dtype=torch.float64).reshape(len(prompt_rows), len(self.judge.weights))
        total_B = torch.tensor(self.judge.totals(prompt_rows, judged), dtype=torch.float32)
        return {
            **rows,
            "reward": total_B,
            "rewards": rewards_BR.float(),
            "most": torch.full((len(prompt_rows),), max_new_tokens),
            "temperature": torch.full((len(prompt_rows),), temperature or 1.0),
        }

    def observed(self, batch: Batch, size: int) -> dict[str, Tensor]:
        """Return a rollout with what the objective observes and credits, in the pieces of its first steps."""
        rows = len(batch["ids"])
        observations: list[Mapping[str, Tensor]] = []
        with self._writing():
            for piece in step_pieces(rows, size, self.micro_batch, self.ranks.replicas):
                with self.precision.context():
                    own = observed(self.objective, self.model, to_device(take(batch, piece), self.precision.device))
                observations.append({name: tensor.cpu() for name, tensor in own.items()})
        batch_observed = {**batch, **{name: torch.cat([own[name] for own in observations]) for name in observations[0]}}
        return {**batch_observed, **credited(self.objective, batch_observed)}

    def _written(
        self, prompts: Sequence[PromptRow], seeds: Sequence[int], max_new_tokens: int, temperature: float
    ) -> list[Answering]:
        """Have the engine answer all prompts, those of one prompt beside each other."""
        context = self.model.spec.context
        limits = Limits(max_new_tokens, context, self.ends)
        draw = sampler(temperature=temperature, vocabulary=self.tokenizer.size)
        device = torch.device(self.precision.device)
        with self._writing(), self.precision.context():
            engine = Engine(
                stepping(self.model, self._kernel),
                self.tokenizer,
                context,
                most_rows=min(len(prompts), AT_ONCE),
                most_tokens=min(len(prompts), AT_ONCE) * context,
                chunk=sum(len(own.ids) for own in prompts[:AT_ONCE]),
                device=device,
            )
            answerings = [
                engine.add(Request(own.ids, limits, draw, seed, scores=0))
                for own, seed in zip(prompts, seeds, strict=True)
            ]
            while engine.advance():
                pass
        for answering in answerings:
            answering.result()
        return answerings

    def described(self) -> str:
        """Return in words how answers are written."""
        if self._kernel == "compiled" and not ready():
            return "compiled steps; their machine code is made now, once on this machine, in some twenty seconds"
        return described(self.model, "eager" if step_kernel() == "eager" else "compiled")

    @cached_property
    def _kernel(self) -> str:
        """``compiled`` wherever steps can be.

        A writer that took them as soon as they are at hand would draw other tokens after a resume than before.
        """
        return "eager" if step_kernel() == "eager" or why_not(self.model) else "compiled"

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Be in the mode of evaluation, without gradients, and leave the global generators as they were."""
        training = self.model.training
        self.model.eval()
        try:
            with torch.no_grad(), torch.random.fork_rng(devices=[]):
                yield
        finally:
            self.model.train(training)


def step_pieces(rows: int, size: int, micro_batch: int | None, replicas: int) -> Iterator[range]:
    """Yield the pieces in which the steps on a rollout are computed, of all ranks: ``size`` rows a step."""
    for start in range(0, rows, size):
        for rank in range(replicas):
            own = range(start + size * rank // replicas, start + size * (rank + 1) // replicas)
            if own:
                yield from pieces(own, micro_batch)


def rows_of_answers(
    prompt_rows: Sequence[PromptRow], answerings: Sequence[Answering], ends: Collection[int]
) -> dict[str, Tensor]:
    """Return prompts and answers as rows; which tokens are the model's follows from lengths and from nothing else.

    Raises:
        RunError: a token of an answer is not among them, or the end token of a finished one.
    """
    prompts = torch.tensor([len(own.ids) for own in prompt_rows])
    answers = torch.tensor([len(answer.written) for answer in answerings])
    length = int((prompts + answers).max())
    ids, scores = torch.zeros(len(prompt_rows), length, dtype=torch.long), torch.zeros(len(prompt_rows), length)
    for row, (own, answer) in enumerate(zip(prompt_rows, answerings, strict=True)):
        first, stop = len(own.ids), len(own.ids) + len(answer.written)
        ids[row, :stop] = torch.tensor([*own.ids, *answer.written])
        scores[row, first:stop] = torch.tensor([score.log_probability for score in answer.scores])
    places = torch.arange(length)
    real = places < (prompts + answers)[:, None]
    rows = {"ids": ids, "real": real, "written": real & (places >= prompts[:, None]), "scores": scores}
    finished = torch.tensor([answer.result().finish_reason == "end" for answer in answerings])
    refuse_lost_tokens(rows, answers, finished, ends)
    return {**rows, "finished": finished}


def refuse_lost_tokens(rows: Batch, answers: Tensor, finished: Tensor, ends: Collection[int]) -> None:
    """Refuse rows in which a token of an answer would not be learned.

    Raises:
        RunError: so many tokens are not written as were drawn, or a finished answer's last one is no end token.
    """
    lasts = rows["real"].sum(1) - 1
    at = torch.arange(len(lasts))
    learnt = rows["written"][at, lasts] & torch.tensor([int(id) in ends for id in rows["ids"][at, lasts]])
    if not torch.equal(rows["written"].sum(1), answers) or bool((finished & ~learnt).any()):
        raise RunError("a token that the model wrote would not be learned, or an end token is lost", "report this")


def end_tokens(tokenizer: Tokenizer, generation: Mapping[str, Any], config: Mapping[str, Any]) -> frozenset[int]:
    """Return the ids that end an answer: generation_config.json's, else config.json's, else the tokenizer's.

    Raises:
        UsageError: there is none.
    """
    for source in (generation, config):
        if (ids := source.get("eos_token_id")) is not None:
            return frozenset(ids if isinstance(ids, list) else [ids])
    return frozenset([tokenizer.special("end")])
