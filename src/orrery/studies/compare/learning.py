"""What each model of a comparison goes through: counting, or a training that fits its time; and being measured."""

import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from orrery.evaluation.floors import joined as joined_ids
from orrery.models.ngram import TokenNgram
from orrery.recipes.config import Recipe
from orrery.recipes.read import check_recipe, plain, set_dotted
from orrery.studies.compare.budgets import Budget
from orrery.studies.compare.findings import ComparisonEntry, points
from orrery.studies.compare.models import COUNTS
from orrery.studies.compare.plan import Job
from orrery.studies.compare.texts import Texts
from orrery.studies.kept import Say
from orrery.studies.training import Training, Watch, speed, training_in

ORDERS = range(2, 8)
TRIAL_STEPS, TRIAL_SECONDS, EVALUATIONS, LINES = 8, 20.0, 15, 60
WARMUP = 0.05
"""The part of a training that the rate rises in where neither a sweep nor a recipe says so."""


def count(texts: Texts, say: Say) -> ComparisonEntry:
    """Count n-grams, of the order that predicts the end of the training text best from what is before it."""
    say(f"{COUNTS}: counting")
    began = time.perf_counter()
    vocabulary = texts.tokenizer.size
    tail = joined_ids(texts.choosing_ids())
    # The last tokens of every document are what is chosen on, as in a sweep: the counts have not seen them.
    head = joined_ids(texts.head_ids())
    tried = TokenNgram(ORDERS[-1], vocabulary).fit(head)
    order = min(ORDERS, key=lambda length: tried.shortened(length).nats(tail))
    ids = joined_ids(texts.train_ids)
    model = TokenNgram(order, vocabulary).fit(ids)
    seconds = time.perf_counter() - began
    nats = -np.log(model.probabilities(joined_ids(texts.held_back_ids))[1:]).sum()
    bits = float(nats) / math.log(2) / texts.size
    return ComparisonEntry(
        name=COUNTS,
        description=f"counts of 1 to {order} tokens, interpolated (Witten-Bell); the order was chosen on training text",
        parameters=model.grams,
        bytes=model.bytes,
        tokens=len(ids) - 1,
        seconds=seconds,
        bits_per_byte=bits,
        perplexity=texts.perplexity(bits),
    )


def learn(job: Job, recipe: Recipe, texts: Texts, folder: Path, say: Say, watch: Watch) -> ComparisonEntry | int:
    """Train and measure one model; return the number of the signal that stopped it, if one did."""
    with training_in(recipe, texts.source, folder) as training:
        assert job.budget is not None
        settings = training.recipe.training
        say(
            f"{job.name}: {job.budget.label}, seed {job.seed}: {training.parameters:,} parameters, {settings.steps:,} "
            f"steps, rate {settings.optimizer.rate:.3g} ({job.rate_from})"
        )
        return training.run(watch).signal or measure(job, training, texts)


def steps_in(budget: Budget, recipe: Recipe, tokens_per_second: float) -> int:
    """Return how many steps a budget is at a speed.

    Steps are settled before the training so that the rate can fall to its end just when the time is over.
    """
    return budget.steps or max(1, int(budget.seconds * tokens_per_second / recipe.batches.positions))


def measured_speed(recipe: Recipe, texts: Texts, seconds: float) -> float:
    """Return a model's tokens of training a second, from a short training that is thrown away.

    It takes about ``seconds``, but at least a few steps.
    """
    first = speed(recipe, texts.source, TRIAL_STEPS)
    steps = int(min(seconds, TRIAL_SECONDS) * first / recipe.batches.positions)
    return speed(recipe, texts.source, steps) if steps > TRIAL_STEPS else first


def scheduled(recipe: Recipe, steps: int, rate: float | None = None, warmup: float | None = None) -> Recipe:
    """Return the recipe for so many steps: evaluated, logged and saved at even distances.

    ``warmup`` is the part of them that the rate rises in; without one it is the recipe's, or `WARMUP`.
    """
    values = plain(recipe)
    set_dotted(values, "training.steps", steps)
    schedule = values["training"]["schedule"]
    if warmup is None:
        schedule["warmup"] = min(schedule["warmup"] or part(WARMUP, steps), max(1, steps // 2))
    else:
        schedule["warmup"] = part(warmup, steps)
    if "decay" in schedule:
        schedule["decay"] = min(schedule["decay"], steps - schedule["warmup"])
    if rate is not None:
        set_dotted(values, "training.optimizer.rate", rate)
    set_dotted(values, "evaluation.every", max(1, steps // EVALUATIONS))
    set_dotted(values, "logging.every", max(1, steps // LINES))
    set_dotted(values, "checkpoints.every", max(1, steps // 5))
    return check_recipe(values, recipe.name)


def part(share: float, steps: int) -> int:
    """Return a part of the steps; at least one unless it is none of them."""
    return max(1, round(share * steps)) if share else 0


def measure(job: Job, training: Training, texts: Texts) -> ComparisonEntry:
    """Return what a trained model reached on the whole text held back."""
    recipe, records = training.recipe, training.folder.records()
    bits = training.bits_per_byte(texts.held_back_ids, texts.size)
    config = ", ".join(f"{key} {value}" for key, value in recipe.model.config.items())
    tokens, seconds = time_and_tokens(records)
    return ComparisonEntry(
        name=job.name,
        description=f"{recipe.model.family or 'a spec'}: {config}",
        parameters=training.parameters,
        bytes=sum(parameter.nbytes for parameter in training.assembled.parts.model.parameters()),
        tokens=tokens,
        seconds=seconds,
        bits_per_byte=bits,
        perplexity=texts.perplexity(bits),
        steps=recipe.training.steps,
        curve=points(records),
        budget=None if job.budget is None else job.budget.amount,
        seed=job.seed,
        recipe=job.rate_from,
        rate=recipe.training.optimizer.rate,
        warmup=recipe.training.schedule.warmup,
    )


def time_and_tokens(records: Sequence[dict[str, Any]]) -> tuple[int, float]:
    """Return the tokens and the seconds of a training, evaluations not counted."""
    last = points([{**record, "val/bpb": 0.0} for record in records])[-1]
    return last.tokens, last.seconds
