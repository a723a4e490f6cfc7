"""From a recipe's model and tokenizer settings to a tokenizer, a spec that fits it, and a model with fresh weights."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from orrery.checkpoints.json_file import read_json
from orrery.errors import DataError, UsageError
from orrery.families import load_family
from orrery.models.calls import default_kernel, keeps_pattern
from orrery.models.decoder import Decoder
from orrery.models.dropout import pattern_dropout, with_dropout
from orrery.models.encoder_decoder import ConditionalDecoder, EncoderDecoder
from orrery.models.initialise import initialise
from orrery.models.limits import check_memory, check_numbers
from orrery.models.sequence_to_sequence import SequenceToSequence
from orrery.models.soundness import check_whole, describes_a_model
from orrery.models.word2vec.files import read_vectors
from orrery.models.word_embeddings import initialise_embeddings
from orrery.nn.attention.kernels import Kernel
from orrery.nn.attention.stored_pattern import stored_pattern
from orrery.nn.patches import PatchEmbedding
from orrery.nn.spec import ModuleSpec, from_json
from orrery.text.tokenizer import Tokenizer, load_tokenizer
from orrery.text.train import train_tokenizer
from orrery.training.config import ModelSettings, Recipe, TokenizerSettings
from orrery.training.loop import Parts
from orrery.training.precision import find_device
from orrery.training.randomness import derive_seed

ConditionalSpec: TypeAlias = EncoderDecoder.Spec | SequenceToSequence.Spec
WritingSpec: TypeAlias = Decoder.Spec | ConditionalSpec
WritingModel: TypeAlias = Decoder | ConditionalDecoder
Found = TypeVar("Found", bound=WritingSpec)


@dataclass(frozen=True)
class Assembled:
    """What a recipe became.

    ``config`` is the family's configuration with what the tokenizer decides filled in; ``corpus_tokens`` counts the
    tokens of each corpus that are learned in an epoch, ``batch_tokens`` those of a batch, on average at most.
    """

    parts: Parts
    spec: WritingSpec
    tokenizer: Tokenizer
    corpus_tokens: Mapping[str, int]
    config: Mapping[str, Any]
    batch_tokens: int

    @property
    def train_tokens(self) -> int:
        """The number of training tokens, of all corpora together."""
        return sum(self.corpus_tokens.values())


def make_tokenizer(settings: TokenizerSettings, texts: Iterable[str]) -> Tokenizer:
    """Load the tokenizer from its file, or train it on the training texts alone.

    Raises:
        DataError: the texts cannot fill the vocabulary that the recipe asks for.
    """
    if settings.file is not None:
        return load_tokenizer(settings.file)
    assert settings.kind is not None
    trained = train_tokenizer(settings.kind, texts, settings.vocabulary, lowercase=settings.lowercase)
    if settings.vocabulary is not None and trained.size < settings.vocabulary:
        raise DataError(
            f"the training text gives a {settings.kind} tokenizer {trained.size:,} ids, "
            f"and tokenizer.vocabulary asks for {settings.vocabulary:,}",
            f"lower tokenizer.vocabulary to {trained.size}, leave it out, or give more text",
        )
    return trained


def family_config(settings: ModelSettings, **known: Any) -> dict[str, Any]:
    """Return the family's configuration: what the tokenizer decides, unless the recipe says otherwise."""
    return {**known, **settings.config}


def read_spec(settings: ModelSettings, config: Mapping[str, Any]) -> Any:
    """Return the spec of the recipe's family or file, with the recipe's dropout, once it is sure that it can be built.

    Raises:
        ModelFileError: it describes no model, or one far beyond any other.
        MachineError: it is too large for this machine.
    """
    source = str(settings.spec or f"the family {settings.family} with this model.config")
    content = config if settings.spec is None else read_json(settings.spec)
    with describes_a_model(source):
        check_numbers(content, source)
        found = check_whole(from_json(content) if settings.spec else load_family(settings.family).spec(content))
        found = found if settings.dropout is None else with_dropout(found, settings.dropout)
        check_memory(found, 2, source)
    return found


def fitting(found: Found, vocabulary: int, length: int) -> Found:
    """Return a spec; refuse one too small for the tokenizer or for the batches."""
    read = found.embed
    if isinstance(read, PatchEmbedding.Spec):
        raise UsageError("the model reads images, the recipe's data are text", "name a family that reads tokens")
    written = getattr(found, "target", None) or read
    smallest = min(read.vocabulary, written.vocabulary)
    if smallest < vocabulary:
        message = f"the model has a vocabulary of {smallest:,}, the tokenizer {vocabulary:,} ids"
        raise UsageError(message, "leave model.config.vocab_size out, or give at least the tokenizer's number")
    if found.context < length:
        message = f"batches.length is {length:,}, the model's context {found.context:,}"
        raise UsageError(message, "lower batches.length or give the model a longer context")
    return found


def prepared(model: WritingModel, recipe: Recipe, tokenizer: Tokenizer) -> WritingModel:
    """Give a model fresh weights that depend on the seed alone, its word vectors, and the kernel to train it with."""
    initialise(model, len(model.stack.blocks), derive_seed(recipe.seed, "weights"))
    if recipe.model.embeddings is not None:
        initialise_embeddings(model, tokenizer, read_vectors(recipe.model.embeddings))
    device = find_device(recipe.training.device)
    model.kernel = training_kernel(model.spec, device)  # type: ignore[arg-type]
    return model


def training_kernel(spec: ModuleSpec, device: str) -> Kernel:
    """Return the attention kernel for a training run: a function of the architecture and the device alone.

    On a processor, patterns of up to 1,024 tokens are kept rather than recomputed in the backward pass.
    """
    short = spec.context <= 1024  # type: ignore[attr-defined]
    kept = device == "cpu" and short and pattern_dropout(spec) == 0 and keeps_pattern(spec)
    return stored_pattern if kept else default_kernel(spec)
