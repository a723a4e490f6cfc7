"""A comparison: models learn the same text one after the other, each with the same budget, and are measured alike."""

import json
import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orrery.checkpoints.disk import machine_errors, write_text
from orrery.checkpoints.lock import NAME as LOCK
from orrery.checkpoints.lock import folder_lock
from orrery.data.corpora import Document, corpus_fingerprint
from orrery.errors import DataError, UsageError
from orrery.labs.compare_findings import Comparison, Entry, entry_from, points
from orrery.labs.compare_page import by_seconds, by_tokens, page
from orrery.labs.contenders import COUNTS, recipe_of, refuse_unknown
from orrery.labs.demo_floors import joined as joined_ids
from orrery.labs.demo_floors import model_bits_per_byte
from orrery.loading.final import writer
from orrery.models.ngram import TokenNgram
from orrery.text.tokenizer import Tokenizer, load_tokenizer
from orrery.training.assemble_text import Portion, assemble_texts, encode, joined, read_portions
from orrery.training.assemble_text import texts as texts_of
from orrery.training.building import Assembly, make_tokenizer
from orrery.training.config import Recipe
from orrery.training.folder import CONFIG, RunFolder, open_run_folder
from orrery.training.loop import Trainer
from orrery.training.precision import find_device
from orrery.training.progress import Reporter, Silent
from orrery.training.recipes import check_recipe, load_recipe, plain, set_dotted

RESULT, PAGE, BY_SECONDS, BY_TOKENS, TOKENIZER = (
    "compare.json",
    "compare.html",
    "loss-by-seconds.svg",
    "loss-by-tokens.svg",
    "tokenizer",
)
ORDERS = range(2, 8)
TRIAL_STEPS, EVALUATIONS, LINES = 8, 15, 60
Ids = NDArray[np.uint32]
Say = Callable[[str], None]
Watch = Callable[[], Reporter]


@dataclass(frozen=True)
class Plan:
    """Who is compared on what: built-in models of ``parameters`` each, or recipes as they are; a budget for each.

    ``base`` names text, tokenizer, batches and seed. Exactly one of ``steps`` and ``minutes`` is the budget.
    """

    base: Recipe
    models: Sequence[str]
    parameters: int
    steps: int | None = None
    minutes: float | None = None
    recipes: Sequence[Recipe] = ()

    def settings(self) -> dict[str, Any]:
        """Return what a comparison that is continued must find again."""
        shared = {key: plain(self.base)[key] for key in ("data", "tokenizer", "batches", "seed")}
        budget = {"parameters": self.parameters, "steps": self.steps, "minutes": self.minutes}
        return {**shared, **budget, "models": [*self.models, *(recipe.name for recipe in self.recipes)]}

    def check(self) -> None:
        """Refuse what cannot be compared.

        Raises:
            UsageError: no model, an unknown one, no budget or two, recipes with other texts or tokenizers.
        """
        refuse_unknown(self.models)
        names = [*self.models, *(recipe.name for recipe in self.recipes)]
        if not names or len(set(names)) < len(names):
            raise UsageError(f"cannot compare {', '.join(names) or 'no models'}", "give models with different names")
        if (self.steps is None) == (self.minutes is None) or (self.steps or self.minutes or 0) <= 0:
            raise UsageError("a comparison needs one budget for all", "give --minutes or --steps, above zero")
        for recipe in self.recipes:
            for key in ("data", "tokenizer"):
                if getattr(recipe, key) != getattr(self.base, key):
                    message = f"{recipe.name}: its {key} is not that of {self.base.name}"
                    raise UsageError(message, f"only models on the same {key} can be compared")


@dataclass(frozen=True)
class Texts:
    """What all models learn and are measured on."""

    portions: list[Portion]
    held_back: list[Document]
    tokenizer: Tokenizer
    train_ids: list[Ids]
    held_back_ids: list[Ids]

    @property
    def size(self) -> int:
        """The bytes of the text held back."""
        return sum(len(document.text.encode()) for document in self.held_back)

    @property
    def held_back_tokens(self) -> int:
        """The tokens of the text held back, the ends of documents among them."""
        return sum(map(len, self.held_back_ids))

    def facts(self, source: str) -> dict[str, Any]:
        """Return what the page and the JSON file say of the text."""
        train = joined(self.portions)
        return {
            "source": source,
            "fingerprint": corpus_fingerprint([*train, *self.held_back]),
            "train_bytes": sum(len(document.text.encode()) for document in train),
            "train_tokens": sum(map(len, self.train_ids)),
            "held_back_bytes": self.size,
            "held_back_tokens": self.held_back_tokens,
            "vocabulary": self.tokenizer.size,
        }

    def perplexity(self, bits_per_byte: float) -> float:
        """Return the perplexity of a token that a number of bits per byte means."""
        return math.exp(min(700.0, bits_per_byte * math.log(2) * self.size / self.held_back_tokens))


def compare(plan: Plan, folder: Path, say: Say, watch: Watch, *, resume: bool = False) -> Comparison:
    """Let every model learn and be measured; leave table, figures and page in ``folder`` after each.

    Args:
        plan: who is compared on what, with which budget.
        folder: a new one, or with ``resume`` that of a comparison of the same settings.
        say: told a line at each stage.
        watch: makes what shows a training, once that begins.
        resume: keep the models that are done, and go on inside the one that is not.

    Raises:
        UsageError: the plan cannot be carried out, or the folder holds something else.
        DataError: nothing is held back, or the text has changed.
    """
    plan.check()
    with compare_folder(folder, resume):
        done = earlier(folder, plan) if resume else []
        say(f"reading {plan.base.data.described}")
        texts = read(plan, folder)
        found = Comparison(plan.settings(), texts.facts(plan.base.data.described), done)
        refuse_other_text(folder, found)
        contenders = recipes(plan, texts, folder)
        for name, recipe in contenders.items():
            if any(entry.name == name for entry in found.entries):
                say(f"{name}: done before")
                continue
            entry = count(texts, say) if recipe is None else learn(recipe, plan, texts, folder / name, say, watch)
            if isinstance(entry, int):
                found.signal = entry
                break
            found.entries.append(entry)
            leave(found, folder)
            say(f"{name}: {entry.bits_per_byte:.3f} bits per byte after {entry.seconds:.1f} s{strayed(entry, plan)}")
    return found


def strayed(entry: Entry, plan: Plan) -> str:
    """Return a warning where a model had a fifth more or less time than its budget: the machine did other things."""
    if plan.minutes is None or entry.steps is None or abs(entry.seconds / (60 * plan.minutes) - 1) < 0.2:
        return ""
    return f", not {60 * plan.minutes:g}: the machine's speed changed, so compare by tokens"


@contextmanager
def compare_folder(folder: Path, resume: bool) -> Iterator[None]:
    """Hold the folder; only ``--resume`` may find something in it."""
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file", "choose another folder with --output")
    with folder_lock(folder):
        others = sorted(entry.name for entry in folder.iterdir() if entry.name != LOCK)
        if others and not resume:
            message = f"{folder} is not empty: it has {', '.join(others[:3])}"
            raise UsageError(message, "add --resume to go on with it, or choose another folder with --output")
        yield


def earlier(folder: Path, plan: Plan) -> list[Entry]:
    """Return the models that an earlier call finished.

    Raises:
        UsageError: that was another comparison.
    """
    file = folder / RESULT
    if not file.exists():
        return []
    try:
        before = json.loads(file.read_text(encoding="utf-8"))
        done = [entry_from(values) for values in before["models"]]
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise UsageError(f"{file} is not of a comparison: {error}", "choose another folder with --output") from error
    for key, value in plan.settings().items():
        if before["settings"].get(key) != value and key != "models":
            message = f"--resume: {key} was {before['settings'].get(key)!r} and is now {value!r}"
            raise UsageError(message, "take the old value, or choose another folder with --output")
    return done


def refuse_other_text(folder: Path, found: Comparison) -> None:
    """Refuse to go on with another text; else note at once what this comparison is of."""
    file = folder / RESULT
    before = json.loads(file.read_text(encoding="utf-8"))["corpus"] if file.exists() else found.corpus
    if before != found.corpus:
        raise DataError(
            "--resume: the text is not the one that this comparison began with", "restore it, or begin anew"
        )
    with machine_errors(folder):
        write_text(file, json.dumps(found.as_json(), indent=1) + "\n")


def read(plan: Plan, folder: Path) -> Texts:
    """Read the text; make the tokenizer on its training part alone, or take the one made before."""
    portions, held_back = read_portions(plan.base.text)
    if not any(document.text for document in held_back):
        raise DataError("no text is held back to measure on", "give --data.split '{tail: 0.1}', or more documents")
    made = folder / TOKENIZER
    tokenizer = (
        load_tokenizer(made) if made.exists() else make_tokenizer(plan.base.tokenizer, texts_of(joined(portions)))
    )
    with machine_errors(folder):
        tokenizer.save(made)
    ids = [encoded for portion in portions for encoded in encode(tokenizer, portion.documents)]
    return Texts(portions, held_back, tokenizer, ids, encode(tokenizer, held_back))


def recipes(plan: Plan, texts: Texts, folder: Path) -> dict[str, Recipe | None]:
    """Return the recipe of each model by its name, with the shared tokenizer; none for what is only counted."""
    found: dict[str, Recipe | None] = {}
    for name in plan.models:
        made = None if name == COUNTS else recipe_of(name, plan.base, texts.tokenizer.size, plan.parameters)
        found[name] = None if made is None else changed(made, "tokenizer", {"file": str(folder / TOKENIZER)})
    return found | {
        recipe.name: changed(recipe, "tokenizer", {"file": str(folder / TOKENIZER)}) for recipe in plan.recipes
    }


def changed(recipe: Recipe, key: str, value: Any) -> Recipe:
    """Return a recipe with one dotted key changed."""
    values = plain(recipe)
    set_dotted(values, key, value)
    return check_recipe(values, recipe.name)


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
            recipe = paced(recipe, steps)
        assembly = assemble_texts(recipe, texts.portions, texts.held_back)
        parameters = sum(parameter.numel() for parameter in assembly.parts.model.parameters())
        say(f"{recipe.name}: {parameters:,} parameters, {recipe.training.steps:,} steps")
        reporter = watch()
        try:
            finish = writer(recipe, assembly)
            outcome = Trainer(replace(assembly.parts, finish=finish), recipe, opened, reporter=reporter).run()
        finally:
            reporter.close()
        return outcome.signal or measure(recipe, assembly, texts, opened)


def affordable(recipe: Recipe, texts: Texts, seconds: float, say: Say) -> int:
    """Return how many steps fit into the time, from the speed of a twentieth of it that is thrown away.

    Steps are settled before the training so that the rate can fall to its end just when the time is over.
    """
    say(f"{recipe.name}: trying its speed")
    rows = recipe.batches.size * recipe.batches.length
    steps = int(seconds * speed(recipe, texts, TRIAL_STEPS) / rows)
    if steps // 20 > TRIAL_STEPS:
        steps = int(seconds * speed(recipe, texts, steps // 20) / rows)
    return max(1, steps)


def speed(recipe: Recipe, texts: Texts, steps: int) -> float:
    """Return the tokens per second of a short run of the training loop itself, without the first two steps."""
    trial = changed(changed(recipe, "training.steps", steps), "logging.every", 1)
    assembly = assemble_texts(trial, texts.portions, texts.held_back)
    with TemporaryDirectory() as place, open_run_folder(Path(place) / "trial") as opened:
        outcome = Trainer(replace(assembly.parts, validation=None), trial, opened, reporter=Silent()).run()
        if outcome.signal is not None:
            raise KeyboardInterrupt
        steady = [1 / record["tokens_per_second"] for record in opened.records()[2:]]
    return len(steady) / sum(steady)


def paced(recipe: Recipe, steps: int) -> Recipe:
    """Return the recipe for so many steps: evaluated, logged and saved at even distances."""
    values = plain(recipe)
    set_dotted(values, "training.steps", steps)
    warmup = values["training"]["schedule"]["warmup"] or max(1, steps // 20)
    set_dotted(values, "training.schedule.warmup", min(warmup, max(1, steps // 2)))
    set_dotted(values, "evaluation.every", max(1, steps // EVALUATIONS))
    set_dotted(values, "logging.every", max(1, steps // LINES))
    set_dotted(values, "checkpoints.every", max(1, steps // 5))
    return check_recipe(values, recipe.name)


def measure(recipe: Recipe, assembly: Assembly, texts: Texts, folder: RunFolder) -> Entry:
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


def leave(found: Comparison, folder: Path) -> None:
    """Write what is known so far: JSON, page and figures."""
    with machine_errors(folder):
        write_text(folder / RESULT, json.dumps(found.as_json(), indent=1) + "\n")
        write_text(folder / PAGE, page(found))
        if any(entry.curve for entry in found.entries):
            write_text(folder / BY_SECONDS, by_seconds(found))
            write_text(folder / BY_TOKENS, by_tokens(found))
