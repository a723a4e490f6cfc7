"""The models that the laws are tried on: tiny, one a family, random in every parameter."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, TypeAlias

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from orrery.families import load_family, names
from orrery.laws.evidence import CannotRunError
from orrery.laws.place import device, placed
from orrery.models.calls import Numbers, on_host
from orrery.models.encoder_decoder import EncoderDecoder
from orrery.models.inputs import Batch
from orrery.models.kernel_choice import caps_scores, keeps_pattern
from orrery.models.model import HIDDEN, LANGUAGE_MODEL, Heads, ModelSpec, apply
from orrery.models.session import DecodingSession, Read
from orrery.nn.attention.differential import DifferentialAttention
from orrery.nn.attention.disentangled import DisentangledAttention
from orrery.nn.attention.kernels import Kernel, eager, sdpa
from orrery.nn.attention.latent import LatentAttention
from orrery.nn.attention.multihead import MultiHeadAttention
from orrery.nn.attention.stored_pattern import stored_pattern
from orrery.nn.cache.kinds import cache_for
from orrery.nn.cache.rows import RowCache
from orrery.nn.context import DEFAULT_EXECUTION, Context, Execution
from orrery.nn.heads import LanguageModelHead, Pooler
from orrery.nn.inputs import Images
from orrery.nn.mixer import StatefulMixer
from orrery.nn.spec import Value, traverse

VOCABULARY = 61
KERNELS: Mapping[str, Kernel] = {"eager": eager, "sdpa": sdpa, "stored_pattern": stored_pattern}
"""Every way to compute attention, the definition first."""

ATTENTIONS = (MultiHeadAttention.Spec, LatentAttention.Spec, DisentangledAttention.Spec, DifferentialAttention.Spec)
"""The parts that ask a kernel. Recurrences and mixers compute theirs alone, whatever kernel a call names."""

CONFIGS: Mapping[str, Mapping[str, Any]] = {name: load_family(name).TINY for name in names()}
"""The tiny configuration that each family file brings."""

Subject: TypeAlias = Any
"""What a law is tried on: a ``Decoder``, an ``Encoder`` or a ``TargetModel``; each takes ids and gives logits."""


class TargetModel(nn.Module):
    """An encoder-decoder that has read one source: from ids to logits it is a decoder, and obeys the same laws.

    Shapes: target ids ``[B, L]`` to logits ``[B, L, V]``.
    """

    first_token: int | None = None

    def __init__(self, model: EncoderDecoder) -> None:
        super().__init__()
        self.model, self.spec = model, model.spec
        self.stack, self.head = model.decoder, model.head
        self.field, read = next(iter(model.spec.inputs.items()))
        dtype = next(model.parameters()).dtype
        self.source = placed(_image(read, dtype)) if isinstance(read, Images) else random_ids(1, 7, seed=5)

    def prepare(self, ids: Int[Tensor, "B L"], **call: Any) -> tuple[Tensor, Context]:
        """Read the source and embed the target."""
        read = self._read(len(ids), call.get("execution", DEFAULT_EXECUTION))
        return self.model.prepare(ids, read, **call)

    def hidden(self, ids: Int[Tensor, "B L"], **call: Any) -> Float[Tensor, "B L D"]:
        """Return the decoder's final stream."""
        return self.model.hidden(self._sources(len(ids)), ids, **call)

    def logits(self, ids: Int[Tensor, "B L"], **call: Any) -> Float[Tensor, "B L V"]:
        """Return the logits of every next target token."""
        return self.model.logits(self._sources(len(ids)), ids, **call)

    def forward(
        self, batch: Batch, heads: Heads | None = None, execution: Execution = DEFAULT_EXECUTION
    ) -> dict[str, Any]:
        """Return what the heads make of the targets."""
        return self.model({**batch, self.field: self._sources(len(batch["ids"]))}, heads, execution)

    def start(
        self,
        source: Int[Tensor, "B L"],
        capacity: int,
        lengths: Numbers | None = None,
        *,
        cache: RowCache | None = None,
    ) -> tuple[Float[Tensor, "B V"], DecodingSession]:
        """Begin with the given target tokens."""
        if cache is None:
            cache = cache_for(self.model.decoder.masks, len(source), capacity, source.device)
        session = DecodingSession(cache, self._read(len(source)))
        logits_BLV = self.model.step(source, session, lengths)
        last = [source.shape[1]] * len(source) if lengths is None else on_host(lengths, "lengths")
        rows_B, last_B = torch.arange(len(source)), torch.tensor(last) - 1
        return logits_BLV[placed(rows_B), placed(last_B)], session

    def step(
        self, tokens: Int[Tensor, "B N"], session: DecodingSession, lengths: Numbers | None = None
    ) -> Float[Tensor, "B N V"]:
        """Write N more target tokens a row."""
        return self.model.step(tokens, session, lengths)

    def _read(self, rows: int, execution: Execution = DEFAULT_EXECUTION) -> Read:
        return self.model.read(self._sources(rows), execution=execution)

    def _sources(self, rows: int) -> Tensor:
        return self.source.expand(rows, *self.source.shape[1:])


class TokenModel(nn.Module):
    """An encoder that answers for whole rows alone: here its stream scores every token by its own table.

    ``E x`` with the embeddings ``E``, as of a tied head: the laws of its stack are stated on what it says of each
    token. What its own heads answer is compared with golden outputs. Shapes: ids ``[B, L]`` to logits ``[B, L, V]``.
    """

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model, self.spec, self.stack = model, model.spec, model.stack
        self.head = LanguageModelHead.Spec(vocabulary=model.spec.vocabulary).build(model.spec.width)
        self.head.vocabulary.weight = model.embed.token.weight

    def hidden(self, ids: Int[Tensor, "B L"], **call: Any) -> Float[Tensor, "B L D"]:
        """Return the final stream."""
        stream: Tensor = self.model.hidden(ids, **call)
        return stream

    def logits(self, ids: Int[Tensor, "B L"], **call: Any) -> Float[Tensor, "B L V"]:
        """Return the scores of every token."""
        scores: Tensor = self.head(self.hidden(ids, **call))
        return scores

    def forward(
        self, batch: Batch, heads: Heads | None = None, execution: Execution = DEFAULT_EXECUTION
    ) -> dict[str, Any]:
        """Return what the one asked head makes of the stream."""
        ((name, answer),) = heads.items() if isinstance(heads, Mapping) else ((LANGUAGE_MODEL, apply),)
        said = self.model(batch, {HIDDEN: lambda _, x_BLD, real_BL: answer(self.head, x_BLD, real_BL)}, execution)
        return {name: said[HIDDEN]}


def _image(read: Images, dtype: torch.dtype) -> Tensor:
    """Return a random image of the size and the numbers that a model reads."""
    noise = torch.randn(1, *read.shape, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
    return noise.to(dtype)


def tiny(family: str, dtype: torch.dtype = torch.float64) -> Subject:
    """Return the family's tiny model in evaluation mode; norms and biases are random too, so none can hide."""
    return _tiny(family, dtype, device())


@lru_cache(maxsize=256)
def _tiny(family: str, dtype: torch.dtype, where: torch.device) -> Subject:
    model = spec_of(family).build(0).to(dtype).eval()
    rng = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(0.3 * torch.randn(parameter.shape, generator=rng, dtype=torch.float64))
    return subject(model.to(where)).eval()


def subject(model: Any) -> Any:
    """Return what the laws are tried on: a model, or a wrapper of it that answers for every token that it is given."""
    if model.spec.reads_source:
        return TargetModel(model)
    heads = model.spec.heads.values()
    of_rows = model.spec.vocabulary is not None and any(isinstance(head, Pooler.Spec) for head in list(heads)[:1])
    return TokenModel(model) if of_rows else model


def inner(model: Subject) -> Any:
    """Return the model inside of what the laws are tried on."""
    return model.model if isinstance(model, TargetModel | TokenModel) else model


def require_tokens(family: str) -> None:
    """Refuse the laws to a family that reads images and writes nothing.

    Raises:
        CannotRunError: it does.
    """
    if image_size(family) is not None:
        raise CannotRunError("inapplicable", "it is stated on tokens; golden outputs look at images")


def image_size(family: str) -> tuple[int, ...] | None:
    """Return the channels, rows and columns of the images that an encoder reads, or nothing where it reads tokens."""
    spec = spec_of(family)
    read = spec.inputs.get("images")
    return read.shape if isinstance(read, Images) and not spec.writes else None


def of_images(model: Any, images: Tensor) -> Float[Tensor, "B N"]:
    """Return what a model says to each image: the mean over its places, or how well each of two texts fits."""
    texts = [random_ids(2, 7)] if "ids" in model.spec.inputs else []
    logits: Tensor = model.logits(images, *texts)
    return logits if logits.dim() == 2 else logits.flatten(1, -2).mean(1)


def translates(family: str) -> bool:
    """Say whether a family writes while it looks at tokens that it has read."""
    return "source" in spec_of(family).inputs


def require(able: bool, why: str) -> None:
    """Refuse a law that a family has no use for.

    Raises:
        CannotRunError: it is not ``able``.
    """
    if not able:
        raise CannotRunError("inapplicable", why)


def kernels_of(family: str) -> dict[str, Kernel]:
    """Return the kernels that can compute a family's attention, if it has one: a cap leaves only the definition."""
    spec = spec_of(family)
    if not _attends(spec):
        return {}
    able = {"sdpa": not caps_scores(spec), "stored_pattern": keeps_pattern(spec)}
    return {name: kernel for name, kernel in KERNELS.items() if able.get(name, True)}


def forms_of(family: str) -> tuple[str, ...]:
    """Return the forms that all of a family's mixers with a state have, if it has any; the definition comes first."""
    mixers = [part for part in tiny(family).modules() if isinstance(part, StatefulMixer)]
    names = dict.fromkeys(form for mixer in mixers for form in ("step", *mixer.forms))
    return tuple(name for name in names if all(name in ("step", *mixer.forms) for mixer in mixers))


def ways_of(family: str) -> dict[str, dict[str, Any]]:
    """Return every way to compute a family: what a call is told, by name; the definition comes first.

    Where there is no attention, a mixer with a state may choose its form too: the call is told nothing. Where neither
    is, that is the only way.
    """
    kernels = {name: {"kernel": kernel} for name, kernel in kernels_of(family).items()}
    forms = {form: {"scan": form} for form in forms_of(family)}
    if kernels:
        return {**kernels, **forms}
    return {**forms, "the form it chooses": {}} if forms else {"the only way": {}}


def _attends(spec: Value) -> bool:
    """Say whether anything in the architecture is an attention that a kernel computes."""
    return any(isinstance(part, ATTENTIONS) for _, part in traverse(spec))


@lru_cache(maxsize=256)
def spec_of(family: str) -> ModelSpec:
    """Return the architecture of a family's tiny model."""
    rules = load_family(family)
    spec: ModelSpec = rules.spec(rules.TINY)
    return spec


def trained(model: nn.Module) -> list[nn.Parameter]:
    """Return the parameters that a gradient changes; a router's correction is moved by its own rule."""
    return [parameter for parameter in model.parameters() if parameter.requires_grad]


def random_ids(*shape: int, seed: int = 1) -> Tensor:
    """Return random token numbers."""
    return placed(torch.randint(VOCABULARY, shape, generator=torch.Generator().manual_seed(seed)))


def real_of(lengths: tuple[int, ...], row: int, side: str) -> Bool[Tensor, "B L"]:
    """Return which places of padded rows are real."""
    real = placed(torch.arange(row) < torch.tensor(lengths)[:, None])
    return real.flip(1) if side == "left" else real
