"""A run on texts: a decoder that learns to predict each next token."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orrery.data.batches import CropBatches, PackedBatches, PaddedBatches, PureSource, SequentialWindows
from orrery.data.corpora import Document, corpus_fingerprint, read_corpus
from orrery.data.mixtures import Component, MixtureBatches
from orrery.data.splits import split_documents, split_tail
from orrery.errors import DataError, UsageError
from orrery.models.model import ModelSpec
from orrery.nn.spec import to_json
from orrery.objectives.causal import CausalLanguageModel
from orrery.text.tokenizer import Tokenizer
from orrery.training.begin import base_of
from orrery.training.building import Assembled, family_config, fitting, make_tokenizer, prepared, read_spec
from orrery.training.config import BatchSettings, DataSettings, Recipe, SplitSettings
from orrery.training.evaluate import Validation
from orrery.training.loop import Parts
from orrery.training.randomness import derive_seed

Ids = NDArray[np.uint32]


@dataclass(frozen=True)
class Portion:
    """The training documents of one corpus, its name and its weight in the mixture."""

    name: str
    weight: float
    documents: list[Document]


def assemble_texts(recipe: Recipe, portions: Sequence[Portion], held_back: list[Document]) -> Assembled:
    """Make or load the tokenizer, and build batches, objective and a fresh model for texts already read."""
    train = joined(portions)
    base = base_of(recipe.model)
    tokenizer = make_tokenizer(recipe.tokenizer, texts(train), base)
    config = family_config(recipe.model, base, vocab_size=tokenizer.size)
    spec = fitting(decoder(read_spec(recipe.model, config, base)), tokenizer.size, recipe.batches.length)
    model, notes = prepared(spec.build(), recipe, tokenizer, base)
    ids = [encode(tokenizer, portion.documents) for portion in portions]
    source = mixed_batches(recipe, portions, ids)
    parts = Parts(
        model=model,
        objective=CausalLanguageModel(recipe.objective.label_smoothing),
        source=source,
        validation=validation(recipe, tokenizer, held_back),
        spec=to_json(spec),
        facts={"corpus": corpus_fingerprint([*train, *held_back]), "tokenizer": tokenizer.fingerprint},
        begin=tokenizer.save,
        epochs=source.epochs if isinstance(source, MixtureBatches) else None,
        notes=notes,
    )
    tokens = {portion.name: sum(map(len, each)) for portion, each in zip(portions, ids, strict=True)}
    return Assembled(parts, spec, tokenizer, tokens, config, recipe.batches.size * recipe.batches.length, base)


def read_portions(settings: DataSettings) -> tuple[list[Portion], list[Document]]:
    """Return the documents to train on, corpus by corpus, and those to validate on, which may be none."""
    portions, held_back = [], []
    for part in settings.parts:
        train, rest = divide(read_documents(settings, part.train), settings.split)
        portions.append(Portion(part.label, part.weight, train))
        held_back += rest
    if settings.split is not None and not any(document.text for document in held_back):
        total = sum(len(portion.documents) for portion in portions)
        raise DataError(
            f"data.split holds nothing back of {total:,} documents: there is no text to validate on",
            "hold back more (data.split.tail cuts each document), give data.val, or leave data.split out",
        )
    return portions, held_back if settings.val is None else read_documents(settings, settings.val)


def joined(portions: Sequence[Portion]) -> list[Document]:
    """Return the training documents of all corpora."""
    return [document for portion in portions for document in portion.documents]


def texts(documents: Iterable[Document]) -> Iterator[str]:
    """Yield what the documents say."""
    return (document.text for document in documents)


def read_documents(settings: DataSettings, source: str) -> list[Document]:
    """Return the documents of one source."""
    return list(read_corpus(source, column=settings.column, invalid=settings.invalid, skip_bad=settings.skip_bad))


def divide(documents: list[Document], split: SplitSettings | None) -> tuple[list[Document], list[Document]]:
    """Return the documents to train on and those that a split holds back."""
    if split is None:
        return documents, []
    if split.every is not None:
        return split_documents(documents, split.every)
    assert split.tail is not None
    pairs = [(document.name, split_tail(document.text, split.tail)) for document in documents]
    return [Document(name, head) for name, (head, _) in pairs], [Document(name, tail) for name, (_, tail) in pairs]


def encode(tokenizer: Tokenizer, documents: Sequence[Document]) -> list[Ids]:
    """Return each document's ids with the end token behind them."""
    end = tokenizer.special("end")
    encoded = tokenizer.encode_batch([document.text for document in documents])
    return [np.asarray([*ids, end], np.uint32) for ids in encoded]


def mixed_batches(recipe: Recipe, portions: Sequence[Portion], ids: Sequence[list[Ids]]) -> PureSource:
    """Return the batches of the one corpus, or of the mixture of several: rows of each by weight."""
    if recipe.text.mixture is None:
        return training_batches(recipe.batches, ids[0], recipe.seed)
    alone = recipe.batches.model_copy(update={"size": 1})
    components = [
        # Each corpus in an order of its own: the same seed would shuffle two of one length alike.
        Component(
            portion.name, training_batches(alone, documents, derive_seed(recipe.seed, "mixture", i)), portion.weight
        )
        for i, (portion, documents) in enumerate(zip(portions, ids, strict=True))
    ]
    return MixtureBatches(components, recipe.batches.size, recipe.seed)


def training_batches(settings: BatchSettings, documents: list[Ids], seed: int) -> PureSource:
    """Return the batches that ``batches.kind`` names."""
    if settings.kind == "packed":
        return PackedBatches(documents, settings.length, settings.size, seed)
    if settings.kind == "padded":
        return PaddedBatches(documents, settings.size, seed, settings.length)
    return CropBatches(stream(documents), settings.length, settings.size, seed)


def stream(documents: list[Ids]) -> Ids:
    """Return all documents one after another."""
    if not documents:
        raise DataError("the corpus has 0 documents", "give the recipe's data text to read")
    return np.concatenate(documents)


def validation(recipe: Recipe, tokenizer: Tokenizer, documents: list[Document]) -> Validation | None:
    """Return windows over the whole held-back text, or None if there is no such text."""
    if not documents:
        return None
    ids = stream(encode(tokenizer, documents))
    windows = SequentialWindows(ids, recipe.batches.length, recipe.batches.size)
    batches = min(len(windows), recipe.evaluation.batches or len(windows))
    size = sum(len(document.text.encode()) for document in documents)
    return Validation(windows, batches, CausalLanguageModel(), bytes_per_token=size / (len(ids) - 1))


def decoder(found: ModelSpec) -> ModelSpec:
    """Return the spec of a model that continues what it reads. Raises `UsageError` for another."""
    if not found.writes or found.reads_source:
        hint = "name a decoder's family or spec; an encoder-decoder learns from data.pairs"
        raise UsageError("the objective causal needs a decoder, this model is none", hint)
    return found
