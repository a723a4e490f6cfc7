"""From a recipe to what it names: data, tokenizer, batches, model and objective."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn

from orrery.checkpoints.disk import write_text
from orrery.data.batches.rollouts import Writer
from orrery.data.batches.seeds import derive_seed
from orrery.data.files import counted_faults, told_faults
from orrery.data.pictures.preparing import Preparation
from orrery.data.sources import BatchRequest, HeldBack, Source
from orrery.errors import UsageError
from orrery.exchange.reading.architecture import CONFIGURATION, FAMILY
from orrery.exchange.reading.files import PICTURES
from orrery.exchange.reading.read import read
from orrery.families import is_row_decoder, load_family
from orrery.metrics import METRICS
from orrery.models.model import ModelSpec
from orrery.objectives import Objective
from orrery.objectives._contracts import begin_vectors, decided_config, give_models, needed_head, own_modules
from orrery.recipes.config import Recipe
from orrery.reports.observers import OBSERVERS, Event, Observer, RunBegan
from orrery.rewards import REWARDS, RewardSettings
from orrery.runs.adapt import adapter_of
from orrery.runs.begin import Base, base_of
from orrery.runs.building import Assembled, family_config, fitting, make_tokenizer, pictures_of, prepared, read_spec
from orrery.runs.growing import outgrown, with_room
from orrery.runs.new_heads import Settled, settle, without_labels
from orrery.runs.padding import with_padding
from orrery.schema.registry import label_of, name_of
from orrery.text.chat.folder import DEFAULT, write_templates
from orrery.text.chat.of_run import template_of_run
from orrery.text.tokenizer import Tokenizer
from orrery.training.distributed import Ranks
from orrery.training.evaluate import Validation
from orrery.training.loop import Parts
from orrery.training.precision import Precision
from orrery.training.rollouts import Judge, ModelWriter, end_tokens
from orrery.training.units import with_unit
from orrery.tuning import describe


def assemble(recipe: Recipe, source: Source | None = None) -> Assembled:
    """Read a recipe's data, make or load its tokenizer, and build batches, objective and model.

    Args:
        recipe: the recipe.
        source: its data, where they have been read already.

    Raises:
        DataError: the data are missing, damaged or too few.
        UsageError: data, objective and model do not fit together.
    """
    observers = [OBSERVERS.class_of(own).of(own) for own in recipe.logging.observers]  # a package may be missing
    source, left_out = (source, []) if source is not None else read_source(recipe)
    objective = recipe.objective_class.of(recipe.objective)
    adapter_of(recipe.model)  # refused before anything is read
    base = base_of(recipe.model)
    needed = source.needs_tokenizer or recipe.tokenizer is not None
    chat = source.chat({} if base is None else base.stored.chat)
    tokenizer = make_tokenizer(recipe.tokenizer, source.texts(), base, chat) if needed else None
    known = {} if tokenizer is None else {"vocab_size": tokenizer.size, **decided_config(objective, tokenizer)}
    config, more = family_config(recipe.model, base, **known), outgrown(base, tokenizer)
    config = with_room(base, config, tokenizer) if base is not None and tokenizer is not None and more else config
    family = recipe.model.family if base is None else base.stored.family
    settled_family = settle(recipe.model, base, config, head := needed_head(objective, source.labels))
    settled, tokenizer = padded(settled_family, family, tokenizer)
    spec = read_spec(recipe.model, settled.config, base, settled.heads, renamed=settled.renamed or more)
    spec = with_unit(spec, settled.head, source.targets if head is not None and head.problem == "regression" else ())
    refuse_misfits(spec, recipe, objective, tokenizer, begun=base is not None)
    examples = source.examples(request(recipe, spec, tokenizer, settled.names, chat, base))
    renewed = without_labels(spec, settled.renewed)
    learnt, named = [] if settled.head is None else [settled.head], settled.config if settled.renamed else None
    model, notes = prepared(spec.build(), recipe, objective, tokenizer, base, renewed, learnt, named)
    # Before what is measured, which asks the objective for what it owns.
    modules, judged = owned(objective, model, recipe.seed, base), judge(recipe.rewards)
    layout = None if settled.heads or recipe.model.mask or (tokenizer is None and spec.vocabulary) else family
    parts = Parts(
        model=model,
        objective=objective,
        source=examples.train,
        validation=validation(recipe, spec, tokenizer, objective, examples.held_back),
        describe=describer(layout, settled.config),
        facts=facts(source, tokenizer, chat, judged),
        keepers=keepers(tokenizer, chat, pictures_of(spec, base)),
        observers=observers,
        epochs=examples.epochs,
        notes=(*notes, *left_out, *source.remarks(), *examples.notes),
        modules=modules,
        inputs=spec.inputs,
        writer=writer(objective, tokenizer, base, chat, judged) if judged.rewards else None,
    )
    return Assembled(parts, spec, tokenizer, examples.tokens, settled.config, examples.batch_tokens, base, layout, chat)


def read_source(recipe: Recipe) -> tuple[Source, list[str]]:
    """Read a recipe's data, and say which bad records are left out. Raises `DataError` where they cannot be read."""
    with counted_faults() as left_out:
        source = recipe.source_class.read(recipe.data)
    return source, told_faults(left_out)


def padded(settled: Settled, family: str | None, tokenizer: Tokenizer | None) -> tuple[Settled, Tokenizer | None]:
    """Return both with a padding named, where a decoder gets a head for whole rows, whose end is found by it."""
    new = settled.renamed and tokenizer is not None and is_row_decoder(load_family(family), settled.config)
    if not new or tokenizer is None:
        return settled, tokenizer
    config, tokenizer = with_padding(settled.config, tokenizer)
    return replace(settled, config=config), tokenizer


def keepers(
    tokenizer: Tokenizer | None, chat: Mapping[str, str], pictures: tuple[Preparation, Any] | None
) -> tuple[Observer, ...]:
    """Return what writes into a run's folder what its checkpoints are used with."""
    texts = () if tokenizer is None else (TokenizerKeeper(tokenizer, chat),)
    return texts if pictures is None else (*texts, PictureKeeper(pictures[0].content))


@dataclass(frozen=True)
class PictureKeeper(Observer):
    """Writes into a run's folder how the pictures of its checkpoints are prepared."""

    content: Mapping[str, Any]

    def observe(self, event: Event) -> None:
        """Write it where the run begins."""
        if isinstance(event, RunBegan):
            write_text(event.folder / PICTURES, json.dumps(dict(self.content), indent=2) + "\n")


@dataclass(frozen=True)
class TokenizerKeeper(Observer):
    """Writes into a run's folder what its checkpoints are used with: tokenizer and chat templates."""

    tokenizer: Tokenizer
    chat: Mapping[str, str]

    def observe(self, event: Event) -> None:
        """Write them where the run begins."""
        if isinstance(event, RunBegan):
            self.tokenizer.save(event.folder)
            write_templates(event.folder, self.chat)


def judge(rewards: Sequence[RewardSettings]) -> Judge:
    """Return the rewards that settings describe, with their weights."""
    return Judge({own.label: (REWARDS.class_of(own).of(own), own.weight) for own in rewards})


def facts(source: Source, tokenizer: Tokenizer | None, chat: Mapping[str, str], judged: Judge) -> dict[str, str]:
    """Return the fingerprints of what a resumed run must find again."""
    fingerprints = {
        "corpus": source.fingerprint,
        "tokenizer": "" if tokenizer is None else tokenizer.fingerprint,
        "chat template": hashlib.sha256(chat[DEFAULT].encode()).hexdigest() if DEFAULT in chat else "",
        "rewards": judged.fingerprint,
    }
    return {name: value for name, value in fingerprints.items() if value}


def writer(
    objective: Objective, tokenizer: Tokenizer | None, base: Base | None, chat: Mapping[str, str], judged: Judge
) -> Callable[[Any, Precision, int | None, Ranks], Writer]:
    """Return what makes of the model of a run one that answers prompts, once it is where it is trained.

    Raises:
        UsageError: nothing ends an answer.
    """
    assert tokenizer is not None
    said = {} if base is None else {**base.stored.generation}
    ends = end_tokens(tokenizer, said, {} if base is None else base.stored.config or {})
    if DEFAULT in chat:
        ends |= template_of_run(chat, tokenizer).end
    own = tokenizer

    def made(model: Any, precision: Precision, micro_batch: int | None, ranks: Ranks) -> Writer:
        return ModelWriter(model, objective, own, ends, judged, precision, micro_batch, ranks)

    return made


def describer(family: str | None, config: Mapping[str, Any]) -> Callable[[Any], dict[str, Any]]:
    """Return what says in spec.json what a model is, and the published layout that can hold it, where one can."""
    published = {} if family is None else {FAMILY: family, CONFIGURATION: dict(config)}
    return lambda model: {**describe(model), **published}


def owned(objective: Objective, model: nn.Module, seed: int, base: Base | None = None) -> Mapping[str, nn.Module]:
    """Return the modules that an objective owns; what is random in them depends on the seed alone.

    Those that stand behind the model to begin from are copied from there.

    Raises:
        UsageError: one is no module.
    """
    sentences = None if base is None else base.stored.sentences
    begin_vectors(objective, None if sentences is None else sentences.vectors)
    give_models(objective, lambda path: read(path).model)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive_seed(seed, "objective"))
        modules = own_modules(objective, model)
    if wrong := [name for name, module in modules.items() if not isinstance(module, nn.Module)]:
        message = f"the objective {label_of(type(objective))}: modules() returns {wrong[0]!r}, which is no module"
        raise UsageError(message, "return torch modules by name")
    return modules


def request(
    recipe: Recipe,
    spec: ModelSpec,
    tokenizer: Tokenizer | None,
    labels: Sequence[str] = (),
    chat: Mapping[str, str] | None = None,
    base: Base | None = None,
) -> BatchRequest:
    """Return what the run asks of its data."""
    batches = recipe.batches
    return BatchRequest(
        kind=batches.kind,
        length=batches.length,
        size=batches.most_rows,
        seed=recipe.seed,
        tokenizer=tokenizer,
        start=spec.first_token,
        labels=labels,
        token_types=spec.token_types,
        evaluation_batches=recipe.evaluation.batches,
        tokens=batches.tokens,
        chat=chat or {},
        pictures=pictures_of(spec, base),
    )


def refuse_misfits(
    spec: ModelSpec, recipe: Recipe, objective: Objective, tokenizer: Tokenizer | None, *, begun: bool
) -> None:
    """Refuse a model that does not fit its objective, its data, how it is to write, or its tokenizer.

    Raises:
        UsageError: it does not.
    """
    objective.bind(spec, tokenizer)
    refuse_missing(spec, recipe, objective)
    refuse_unwritten(spec, recipe)
    if tokenizer is not None:
        fitting(spec, tokenizer.size, recipe.batches.length, begun=begun)


def refuse_missing(spec: ModelSpec, recipe: Recipe, objective: Objective) -> None:
    """Refuse a model that reads what neither the data give nor the objective makes.

    Raises:
        UsageError: it does.
    """
    gives = recipe.source_class.fields(recipe.batches.kind)
    if missing := [name for name in spec.inputs if name not in (*gives, *objective.makes)]:
        kind = name_of(recipe.source_class)
        message = f"the model reads {' and '.join(missing)}, and data of kind {kind} give {', '.join(gives)}"
        raise UsageError(message, "name a family that reads what the data give, or other data")


def refuse_unwritten(spec: ModelSpec, recipe: Recipe) -> None:
    """Refuse settings of writing for a model that does not write.

    Raises:
        UsageError: there are some.
    """
    if recipe.generation.said and not spec.writes:
        first = next(iter(recipe.generation.said))
        raise UsageError(f"generation.{first} says how to write, and this model writes nothing", "leave it out")


def validation(
    recipe: Recipe, spec: ModelSpec, tokenizer: Tokenizer | None, objective: Objective, held_back: HeldBack | None
) -> Validation | None:
    """Return the examples held back with what is measured on them, or None if there are none.

    Raises:
        UsageError: a metric does not fit the model or the data, or something is to be measured and nothing held back.
    """
    if held_back is None:
        if recipe.measuring:
            message = f"{recipe.measuring[0]}: nothing of {recipe.data.described} is held back to measure on"
            raise UsageError(message, "give data with a part for validation, or leave it out")
        return None
    metrics = {name: METRICS.class_of(settings).of(settings) for name, settings in recipe.measured.items()}
    for name, metric in metrics.items():
        metric.bind(spec, tokenizer)
        if metric.needs_bytes and held_back.bytes_per_token is None:
            message = f"evaluation.metrics: {name} counts bytes of text, and data of kind {recipe.data.kind} have none"
            raise UsageError(message, "leave it out")
    return Validation(
        held_back.source,
        held_back.batches,
        objective.evaluated(),
        held_back.bytes_per_token,
        metrics,
        recipe.evaluation.best,
        spec.inputs,
    )
