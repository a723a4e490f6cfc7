"""From a recipe's model and tokenizer settings to a tokenizer, a spec that fits it, and a model with fresh weights."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from orrery.checkpoints.json_file import read_json
from orrery.data.batches.seeds import derive_seed
from orrery.data.corpora import read_corpus
from orrery.data.pictures.preparing import Preparation, for_size
from orrery.errors import DataError, UsageError
from orrery.families import initial_stds, load_family, part_of_texts, spec_of
from orrery.kernels.processor import this_processor
from orrery.language_model.pictures import preparation_of
from orrery.models.dropout import pattern_dropout, with_dropout
from orrery.models.heads import HeadSettings
from orrery.models.initialise import STD, initialise
from orrery.models.kernel_choice import default_kernel, keeps_pattern
from orrery.models.limits import check_memory, check_numbers
from orrery.models.model import Model, ModelSpec
from orrery.models.prefix_mask import with_prefix
from orrery.models.soundness import check_whole, describes_a_model
from orrery.models.word2vec.files import read_vectors
from orrery.models.word_embeddings import initialise_embeddings
from orrery.nn.attention.kernels import Kernel
from orrery.nn.attention.stored_pattern import stored_pattern, stored_where_faster
from orrery.nn.inputs import Images, Tokens
from orrery.nn.spec import from_json
from orrery.objectives import Objective
from orrery.objectives._contracts import trained_heads
from orrery.recipes.config import ModelSettings, Recipe, TokenizerSettings
from orrery.runs.adapt import adapt, adapter_of
from orrery.runs.begin import Base, freeze, take_encoder, take_weights, with_heads
from orrery.runs.growing import growth_note, new_rows, refuse_frozen
from orrery.schema.registry import name_of
from orrery.text.chat.of_run import control_tokens, control_tokens_of
from orrery.text.special import train_framed, with_control
from orrery.text.tokenizer import Tokenizer, load_tokenizer
from orrery.training.loop import Parts
from orrery.training.precision import find_device
from orrery.training.units import keep_answers

DEVIATION = ("initializer_range", "init_std")
"""What ``config.json`` calls the standard deviation of new matrices."""
Found = TypeVar("Found", bound=ModelSpec)


@dataclass(frozen=True)
class Assembled:
    """What a recipe became.

    ``config`` is the family's configuration with what the tokenizer decides filled in; there is no tokenizer where the
    data need none; ``corpus_tokens`` counts the tokens of each corpus that are learned in an epoch, ``batch_tokens``
    those of a batch, on average at most; ``family`` is the published layout that can hold the model, if one can;
    ``chat`` are the chat templates that it has, by name.
    """

    parts: Parts
    spec: ModelSpec
    tokenizer: Tokenizer | None
    corpus_tokens: Mapping[str, int]
    config: Mapping[str, Any]
    batch_tokens: int
    base: Base | None = None
    family: str | None = None
    chat: Mapping[str, str] = field(default_factory=dict)

    @property
    def pictures(self) -> Mapping[str, Any] | None:
        """The content of preprocessor_config.json, where the model reads pictures."""
        found = pictures_of(self.spec, self.base)
        return None if found is None else found[0].content

    @property
    def required_tokenizer(self) -> Tokenizer:
        """The tokenizer of a run on text.

        Raises:
            UsageError: the run is on something else.
        """
        if self.tokenizer is None:
            raise UsageError("the run has no tokenizer", "name one: tokenizer.file, or tokenizer.kind to train one")
        return self.tokenizer

    @property
    def train_tokens(self) -> int:
        """The number of training tokens, of all corpora together."""
        return sum(self.corpus_tokens.values())


def pictures_of(spec: ModelSpec, base: Base | None) -> tuple[Preparation, tuple[int, int, int]] | None:
    """Return how a model's pictures are prepared, as its base's or as ViT's are, and their shape; of others nothing."""
    read = next((each for each in spec.inputs.values() if isinstance(each, Images)), None)
    if read is None:
        return None
    own = for_size(read.rows, read.columns, read.channels) if base is None else preparation_of(base.stored, read)
    return own, read.shape


def make_tokenizer(
    settings: TokenizerSettings | None,
    texts: Iterable[str],
    base: Base | None = None,
    chat: Mapping[str, str] | None = None,
) -> Tokenizer:
    """Load the tokenizer from its file, or train it on training texts alone or what ``train`` names.

    Without settings it is the base's. One that lacks a control token of ``chat``, the run's templates, gets it.

    Raises:
        DataError: the texts cannot fill the vocabulary that the recipe asks for.
        UsageError: neither the recipe nor the base names one.
    """
    made = possible_tokenizer(settings, texts, base, chat)
    if settings is not None and settings.vocabulary is not None and made.size < settings.vocabulary:
        raise DataError(
            f"{settings.train or 'the training text'} gives a {settings.kind} tokenizer {made.size:,} ids, "
            f"and tokenizer.vocabulary asks for {settings.vocabulary:,}",
            f"lower tokenizer.vocabulary to {made.size}, leave it out, or give more text",
        )
    return made


def possible_tokenizer(
    settings: TokenizerSettings | None,
    texts: Iterable[str],
    base: Base | None = None,
    chat: Mapping[str, str] | None = None,
) -> Tokenizer:
    """Do as `make_tokenizer`; texts that cannot fill the vocabulary give what they can."""
    if settings is None:
        if base is None or base.stored.tokenizer is None:
            where = "the recipe names no tokenizer" if base is None else f"{base.stored.folder} has no tokenizer"
            raise UsageError(where, "name one: tokenizer.file, or tokenizer.kind to train one")
        return with_control(base.stored.tokenizer, control_tokens(chat or {}))
    if settings.file is not None:
        return with_control(load_tokenizer(settings.file), control_tokens(chat or {}))
    assert settings.kind is not None
    control = [*control_tokens(chat or {}), *([] if settings.chat is None else control_tokens_of(settings.chat))]
    if settings.train is not None:
        texts = _texts(settings.train)
    return train_framed(
        settings.kind, texts, settings.vocabulary, settings.frame, lowercase=settings.lowercase, control=control
    )


def _texts(named: str) -> Iterator[str]:
    """Yield the texts of a file or a named set; what holds none is refused by its name."""
    any_text = False
    for document in read_corpus(named):
        any_text = any_text or bool(document.text.strip())
        yield document.text
    if not any_text:
        raise DataError(f"tokenizer.train: {named} is empty or only whitespace", "name a file or a set with text")


def family_config(settings: ModelSettings, base: Base | None = None, **known: Any) -> dict[str, Any]:
    """Return the family's configuration: the base's, or what the tokenizer decides unless the recipe says otherwise."""
    if base is not None:
        return dict(base.stored.config or {})
    part = None if settings.family is None else part_of_texts(load_family(settings.family))
    if part is None:
        return {**known, **settings.config}
    # What the tokenizer decides of the vocabulary stands on the side that has one.
    side = {key: known.pop(key) for key in ("vocab_size", "eos_token_id") if key in known}
    return {**known, **settings.config, part: {**side, **settings.config.get(part, {})}}


def read_spec(
    settings: ModelSettings,
    config: Mapping[str, Any],
    base: Base | None = None,
    heads: Mapping[str, HeadSettings] | None = None,
    *,
    renamed: bool = False,
) -> Any:
    """Return the spec of the recipe's family, file or base, with its heads and dropout, once it can be built.

    ``heads`` are new ones, by default the recipe's; ``renamed`` says that ``config`` names another class than the base.

    Raises:
        ModelFileError: it describes no model, or one far beyond any other.
        MachineError: it is too large for this machine.
        UsageError: a new head has the name of another.
    """
    heads = settings.heads if heads is None else heads
    if base is not None:
        spec = spec_of(load_family(base.stored.family), config) if renamed else base.stored.model.spec
        chosen = with_heads(spec, heads)
        chosen = chosen if settings.dropout is None else with_dropout(chosen, settings.dropout)
        chosen = chosen if settings.mask is None else with_prefix(chosen)
        check_memory(chosen, 2, str(base.stored.folder))
        return chosen
    source = str(settings.spec or f"the family {settings.family} with this model.config")
    content = config if settings.spec is None else read_json(settings.spec)
    with describes_a_model(source):
        check_numbers(content, source)
        chosen = check_whole(from_json(content) if settings.spec else spec_of(load_family(settings.family), content))
        chosen = with_heads(chosen if settings.dropout is None else with_dropout(chosen, settings.dropout), heads)
        chosen = chosen if settings.mask is None else with_prefix(chosen)
        check_memory(chosen, 2, source)
    return chosen


def fitting(architecture: Found, vocabulary: int, length: int, *, begun: bool = False) -> Found:
    """Return a spec; refuse one too small for the tokenizer or for the batches; ``begun``: of a model that exists."""
    tokens = [read.vocabulary for read in architecture.inputs.values() if isinstance(read, Tokens)]
    if not tokens:
        raise UsageError("the model reads images, the recipe's data are text", "name a family that reads tokens")
    smallest = min(tokens)
    if smallest < vocabulary:
        message = f"the model has a vocabulary of {smallest:,}, the tokenizer {vocabulary:,} ids"
        hint = "leave model.config.vocab_size out, or give at least the tokenizer's number"
        raise UsageError(message, "leave the section tokenizer out: the model brings its own" if begun else hint)
    if architecture.context < length:
        message = f"batches.length is {length:,}, the model's context {architecture.context:,}"
        raise UsageError(message, "lower batches.length or give the model a longer context")
    return architecture


def prepared(
    model: Model,
    recipe: Recipe,
    objective: Objective,
    tokenizer: Tokenizer | None,
    base: Base | None = None,
    renewed: Sequence[str] = (),
    heads: Sequence[str] = (),
    config: Mapping[str, Any] | None = None,
) -> tuple[Model, list[str]]:
    """Give a model the weights that it begins with and the kernel to train it with, and say what was done.

    Fresh weights depend on the seed alone; over them come word vectors, or the weights of the base but those whose
    names begin with one of ``renewed``, and what its files hold for a new class of ``config``; then an adapter, beside
    which ``heads`` learn.
    """
    seed = derive_seed(recipe.seed, "weights")
    initialise(model, len(model.stack.blocks), seed, deviation(recipe.model), family_stds(recipe.model))
    if recipe.model.embeddings is not None:
        if tokenizer is None:
            raise UsageError("model.embeddings are vectors of words, and the data are none", "leave it out")
        initialise_embeddings(model, tokenizer, read_vectors(recipe.model.embeddings))
    rows = new_rows(base, tokenizer)
    notes: list[str] = [] if recipe.model.encoder is None else take_encoder(model, recipe.model.encoder)
    if base is not None:
        notes += take_weights(model, base, renewed, config, *((rows.names, rows.take) if rows is not None else ()))
        keep_answers(model, base.stored.model.spec, renewed)
    notes += freeze(model, recipe.model.freeze)
    notes += adapt(model, adapter_of(recipe.model, heads), derive_seed(recipe.seed, "adapter"))
    if base is not None and tokenizer is not None and rows is not None:
        refuse_frozen(model, base, rows)
        notes += growth_note(base, tokenizer)
    kind, trained = name_of(recipe.objective_class), trained_heads(objective, model.spec)
    notes += [
        f"head {name}: new, and the objective {kind} does not train it"
        for name in recipe.model.heads
        if name not in trained
    ]
    device = find_device(recipe.training.device)
    model.kernel = training_kernel(model.spec, device)
    return model, notes


def deviation(settings: ModelSettings) -> float:
    """Return the standard deviation of new matrices: ``model.config.initializer_range``, or BART's and OPT's word.

    Raises:
        UsageError: it is no number above 0.
    """
    key = next((key for key in DEVIATION if key in settings.config), DEVIATION[0])
    return _above_zero(settings, key, STD)


def family_stds(settings: ModelSettings) -> Mapping[str, float]:
    """Return the deviations of the matrices that the family draws otherwise; none where the recipe gives one for all.

    Raises:
        UsageError: ``model.config.initializer_factor`` is no number above 0.
    """
    if settings.family is None or any(key in settings.config for key in DEVIATION):
        return {}
    _above_zero(settings, "initializer_factor", 1.0)
    return initial_stds(load_family(settings.family), settings.config)


def _above_zero(settings: ModelSettings, key: str, usual: float) -> float:
    value = settings.config.get(key, usual)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf"):
        hint = f"give a number above 0, such as {usual}; narrower models learn faster with more"
        raise UsageError(f"model.config.{key} is {value!r}", hint)
    return float(value)


def training_kernel(spec: ModelSpec, device: str) -> Kernel:
    """Return the attention kernel for a training run: a function of the architecture and the machine alone.

    On a processor, patterns of up to 1,024 tokens are kept rather than recomputed in the backward pass: under autocast
    that is several times as fast as torch's fused kernel, and in float32 a seventh faster where whole rows are causal.
    Others in float32 take a tenth to a half less by the fused one on processors of Intel with AVX-512.
    """
    short = spec.context <= 1024
    if device != "cpu" or not short or pattern_dropout(spec) or not keeps_pattern(spec):
        return default_kernel(spec)
    processor = this_processor()
    fused = processor.vendor == "GenuineIntel" and "avx512f" in processor.flags
    return stored_where_faster if fused else stored_pattern
