"""What each model of a comparison goes through: counting, or a training that fits its time; and being measured."""

import math
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from orrery.compare.findings import Entry, points
from orrery.compare.models import COUNTS
from orrery.compare.plan import Plan, changed
from orrery.compare.texts import Texts
from orrery.models.ngram import TokenNgram
from orrery.saving.final import writer
from orrery.tasks.floors import joined as joined_ids
from orrery.tasks.floors import model_bits_per_byte
from orrery.training.assemble import assemble
from orrery.training.building import Assembled
from orrery.training.config import Recipe
from orrery.training.folder import CONFIG, RunFolder, open_run_folder
from orrery.training.loop import Trainer
from orrery.training.precision import find_device
from orrery.training.progress import Reporter, Silent
from orrery.training.recipes import check_recipe, load_recipe, plain, set_dotted
from orrery.training.signals import pass_on

ORDERS = range(2, 8)
TRIAL_STEPS, EVALUATIONS, LINES = 8, 15, 60
Say = Callable[[str], None]
Watch = Callable[[], Reporter]


def count(texts: Texts, say: Say) -> Entry:
    """Count n-grams, of the order that predicts the end of the training text best from what is before it."""
    say(f"{COUNTS}: counting")
    began = time.perf_counter()
    ids, vocabulary = joined_ids(texts.train_ids), texts.tokenizer.size
    head, tail = np.split(ids, [max(1, len(ids) * 19 // 20)])
    tried = TokenNgram(ORDERS[-1], vocabulary).fit(head)
    order = min(ORDERS, key=lambda length: tried.shortened(length).nats(tail) if len(tail) else length)
    model = TokenNgram(order, vocabulary).fit(ids)
    seconds = time.perf_counter() - began
    nats = -np.log(model.probabilities(joined_ids(texts.held_back_ids))[1:]).sum()
    bits = float(nats) / math.log(2) / texts.size
    return Entry(
        name=COUNTS,
        description=f"counts of 1 to {order} tokens, interpolated (Witten-Bell); the order was chosen on training text",
        parameters=model.grams,
        bytes=model.bytes,
        tokens=len(ids) - 1,
        seconds=seconds,
        bits_per_byte=bits,
        perplexity=texts.perplexity(bits),
    )


def learn(recipe: Recipe, plan: Plan, texts: Texts, folder: Path, say: Say, watch: Watch) -> Entry | int:
    """Train and measure one model; return the number of the signal that stopped it, if one did."""
    with open_run_folder(folder, resume=True) as opened:
        if (folder / CONFIG).exists():  # begun before: its steps are settled
            recipe = load_recipe(folder / CONFIG)
        else:
            steps = plan.steps or affordable(recipe, texts, 60 * (plan.minutes or 0), say)
            recipe = scheduled(recipe, steps)
        assembly = assemble(recipe, texts.source)
        parameters = sum(parameter.numel() for parameter in assembly.parts.model.parameters())
        say(f"{recipe.name}: {parameters:,} parameters, {recipe.training.steps:,} steps")
        reporter = watch()
        try:
            finish = writer(recipe, assembly)
            trainer = Trainer(replace(assembly.parts, finish=finish), recipe, opened, reporter=reporter)
            trainer.run()
        finally:
            reporter.close()
        return trainer.signals.received or measure(recipe, assembly, texts, opened)


def affordable(recipe: Recipe, texts: Texts, seconds: float, say: Say) -> int:
    """Return how many steps fit into the time, from the speed of a twentieth of it that is thrown away.

    Steps are settled before the training so that the rate can fall to its end just when the time is over.
    """
    say(f"{recipe.name}: trying its speed")
    rows = recipe.batches.positions
    steps = int(seconds * speed(recipe, texts, TRIAL_STEPS) / rows)
    if steps // 20 > TRIAL_STEPS:
        steps = int(seconds * speed(recipe, texts, steps // 20) / rows)
    return max(1, steps)


def speed(recipe: Recipe, texts: Texts, steps: int) -> float:
    """Return the tokens per second of a short run of the training loop itself, without the first two steps."""
    trial = changed(changed(recipe, "training.steps", steps), "logging.every", 1)
    assembly = assemble(trial, texts.source)
    with TemporaryDirectory() as place, open_run_folder(Path(place) / "trial") as opened:
        trainer = Trainer(replace(assembly.parts, validation=None), trial, opened, reporter=Silent())
        trainer.run()
        pass_on(trainer.signals.received)
        steady = [1 / record["tokens_per_second"] for record in opened.records()[2:]]
    return len(steady) / sum(steady)


def scheduled(recipe: Recipe, steps: int) -> Recipe:
    """Return the recipe for so many steps: evaluated, logged and saved at even distances."""
    values = plain(recipe)
    set_dotted(values, "training.steps", steps)
    warmup = values["training"]["schedule"]["warmup"] or max(1, steps // 20)
    warmup = min(warmup, max(1, steps // 2))
    set_dotted(values, "training.schedule.warmup", warmup)
    if "decay" in values["training"]["schedule"]:
        decay = min(values["training"]["schedule"]["decay"], steps - warmup)
        set_dotted(values, "training.schedule.decay", decay)
    set_dotted(values, "evaluation.every", max(1, steps // EVALUATIONS))
    set_dotted(values, "logging.every", max(1, steps // LINES))
    set_dotted(values, "checkpoints.every", max(1, steps // 5))
    return check_recipe(values, recipe.name)


def measure(recipe: Recipe, assembly: Assembled, texts: Texts, folder: RunFolder) -> Entry:
    """Return what a trained model reached on the whole text held back."""
    model, curve = assembly.parts.model.eval(), points(folder.records())
    device = find_device(recipe.training.device)
    bits = model_bits_per_byte(model, texts.held_back_ids, recipe.batches.length, texts.size, device)
    parameters = list(model.parameters())
    config = ", ".join(f"{key} {value}" for key, value in recipe.model.config.items())
    return Entry(
        name=recipe.name,
        description=f"{recipe.model.family or 'a spec'}: {config}",
        parameters=sum(parameter.numel() for parameter in parameters),
        bytes=sum(parameter.nbytes for parameter in parameters),
        tokens=curve[-1].tokens,
        seconds=curve[-1].seconds,
        bits_per_byte=bits,
        perplexity=texts.perplexity(bits),
        steps=recipe.training.steps,
        curve=curve,
    )
