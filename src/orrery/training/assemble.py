"""From a recipe to what it names: text, tokenizer, batches, model and objective."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orrery.data.batches import CropBatches, PackedBatches, PaddedBatches, PureSource, SequentialWindows
from orrery.data.corpora import Document, corpus_fingerprint, read_corpus
from orrery.data.mixtures import Component, MixtureBatches
from orrery.data.splits import split_documents, split_tail
from orrery.errors import DataError, UsageError
from orrery.families import load_family
from orrery.models.calls import default_kernel, keeps_pattern
from orrery.models.decoder import Decoder
from orrery.models.dropout import pattern_dropout, with_dropout
from orrery.models.initialise import initialise
from orrery.models.word2vec.files import read_vectors
from orrery.models.word_embeddings import initialise_embeddings
from orrery.nn.attention.kernels import Kernel
from orrery.nn.attention.materialised import materialised
from orrery.nn.spec import from_json, to_json
from orrery.objectives.causal import CausalLanguageModel
from orrery.text.tokenizer import Tokenizer, load_tokenizer
from orrery.text.train import train_tokenizer
from orrery.training.config import BatchSettings, DataSettings, ModelSettings, Recipe, SplitSettings, TokenizerSettings
from orrery.training.evaluate import Validation
from orrery.training.loop import Parts
from orrery.training.precision import find_device
from orrery.training.randomness import derive_seed

Ids = NDArray[np.uint32]


@dataclass(frozen=True)
class Assembly:
    """What a recipe became: the parts of a run, spec, tokenizer, and the training tokens of each corpus by name."""

    parts: Parts
    spec: Decoder.Spec
    tokenizer: Tokenizer
    corpus_tokens: Mapping[str, int]

    @property
    def train_tokens(self) -> int:
        """The number of training tokens, of all corpora together."""
        return sum(self.corpus_tokens.values())


@dataclass(frozen=True)
class Portion:
    """The training documents of one corpus, its name and its weight in the mixture."""

    name: str
    weight: float
    documents: list[Document]


def assemble(recipe: Recipe) -> Assembly:
    """Read the recipe's text and assemble a run on it."""
    return assemble_texts(recipe, *read_portions(recipe.data))


def assemble_texts(recipe: Recipe, portions: Sequence[Portion], held_back: list[Document]) -> Assembly:
    """Make or load the tokenizer, and build batches, objective and a fresh model for texts already read."""
    train = joined(portions)
    tokenizer = make_tokenizer(recipe.tokenizer, train)
    spec = model_spec(recipe.model, tokenizer.size, recipe.batches.length)
    ids = [encode(tokenizer, portion.documents) for portion in portions]
    source = mixed_batches(recipe, portions, ids)
    model = build_model(spec, recipe.seed, find_device(recipe.training.device))
    if recipe.model.embeddings is not None:
        initialise_embeddings(model, tokenizer, read_vectors(recipe.model.embeddings))
    parts = Parts(
        model=model,
        objective=CausalLanguageModel(recipe.objective.label_smoothing),
        source=source,
        validation=validation(recipe, tokenizer, held_back),
        spec=to_json(spec),
        facts={"corpus": corpus_fingerprint([*train, *held_back]), "tokenizer": tokenizer.fingerprint},
        begin=tokenizer.save,
        epochs=source.epochs if isinstance(source, MixtureBatches) else None,
    )
    tokens = {portion.name: sum(map(len, each)) for portion, each in zip(portions, ids, strict=True)}
    return Assembly(parts, spec, tokenizer, tokens)


def read_portions(settings: DataSettings) -> tuple[list[Portion], list[Document]]:
    """Return the documents to train on, corpus by corpus, and those to validate on, which may be none."""
    portions, held_back = [], []
    for part in settings.parts:
        train, rest = divide(read_documents(settings, part.train), settings.split)
        portions.append(Portion(part.label, part.weight, train))
        held_back += rest
    return portions, held_back if settings.val is None else read_documents(settings, settings.val)


def joined(portions: Sequence[Portion]) -> list[Document]:
    """Return the training documents of all corpora."""
    return [document for portion in portions for document in portion.documents]


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


def make_tokenizer(settings: TokenizerSettings, documents: Sequence[Document]) -> Tokenizer:
    """Load the tokenizer from its file, or train it on the training documents alone."""
    if settings.file is not None:
        return load_tokenizer(settings.file)
    assert settings.kind is not None
    texts = (document.text for document in documents)
    return train_tokenizer(settings.kind, texts, settings.vocabulary, lowercase=settings.lowercase)


def encode(tokenizer: Tokenizer, documents: Sequence[Document]) -> list[Ids]:
    """Return each document's ids with the end token behind them."""
    end = tokenizer.special("end")
    encoded = tokenizer.encode_batch([document.text for document in documents])
    return [np.asarray([*ids, end], np.uint32) for ids in encoded]


def mixed_batches(recipe: Recipe, portions: Sequence[Portion], ids: Sequence[list[Ids]]) -> PureSource:
    """Return the batches of the one corpus, or of the mixture of several: rows of each by weight."""
    if recipe.data.mixture is None:
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


def model_spec(settings: ModelSettings, vocabulary: int, length: int) -> Decoder.Spec:
    """Return the spec of the recipe's family or file; refuse one too small for the tokenizer or the batches.

    A family's vocabulary is the tokenizer's unless its config has a larger one.
    """
    if settings.spec is not None:
        found = from_json(json.loads(settings.spec.read_text(encoding="utf-8")))
    else:
        config = {"vocab_size": vocabulary, **settings.config}
        found = load_family(settings.family).spec(config)
    if not isinstance(found, Decoder.Spec):
        raise UsageError("the model predicts no next token", "name a decoder's family or spec")
    if found.embed.vocabulary < vocabulary:
        message = f"the model has a vocabulary of {found.embed.vocabulary:,}, the tokenizer {vocabulary:,} ids"
        raise UsageError(message, "leave model.config.vocab_size out, or give at least the tokenizer's number")
    if found.context < length:
        message = f"batches.length is {length:,}, the model's context {found.context:,}"
        raise UsageError(message, "lower batches.length or give the model a longer context")
    return found if settings.dropout is None else with_dropout(found, settings.dropout)


def build_model(spec: Decoder.Spec, seed: int, device: str) -> Decoder:
    """Build the model with fresh weights that depend on the seed alone, and the kernel to train it with."""
    model = spec.build()
    initialise(model, len(spec.stack.blocks), derive_seed(seed, "weights"))
    model.kernel = training_kernel(spec, device)
    return model


def training_kernel(spec: Decoder.Spec, device: str) -> Kernel:
    """Return the attention kernel for a training run: a function of the architecture and the device alone.

    On a processor, patterns of up to 1,024 tokens are kept rather than recomputed in the backward pass.
    """
    kept = device == "cpu" and spec.context <= 1024 and pattern_dropout(spec) == 0 and keeps_pattern(spec)
    return materialised if kept else default_kernel(spec)
