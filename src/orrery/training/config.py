"""A recipe: all that decides a run, as closed and checked settings; importing it imports no torch."""

import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, model_validator
from pydantic_core import PydanticCustomError

from orrery.errors import UsageError
from orrery.text.kinds import Kind
from orrery.training.numbers import (
    AboveZero,
    Count,
    Fraction,
    NotNegative,
    Number,
    Part,
    Positive,
    Seed,
    Several,
    Share,
    Tokens,
)

RunName = Annotated[str, Field(pattern=r"^[\w][\w.-]*$", max_length=100)]
MEASURES = (
    "step",
    "train/loss",
    "lr",
    "grad_norm",
    "tokens",
    "skipped",
    "tokens_per_second",
    "memory",
    "mfu",
)
HELD_BACK = ("val/loss", "val/perplexity", "val/bpb")
"""The measures of each line of metrics, and those of text held back."""


class Section(BaseModel):
    """A closed group of settings: an unknown key, NaN and infinity are errors."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, values: Any) -> Any:
        known = [field.alias or name for name, field in cls.model_fields.items()]
        for key in values if isinstance(values, Mapping) else ():
            if key not in known:
                close = difflib.get_close_matches(str(key), known, n=1)
                advice = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(known)}"
                context = {"key": str(key), "advice": advice}
                raise PydanticCustomError("unknown_key", "unknown key; {advice}", context)
        return values


def kind_or(default: str, *others: str) -> Discriminator:
    """Choose a section's class by its ``kind``, which may be left out."""

    def kind(values: Any) -> Any:
        return values.get("kind", default) if isinstance(values, Mapping) else getattr(values, "kind", None)

    message = f"kind must be one of {', '.join((default, *others))}"
    return Discriminator(kind, custom_error_type="kind", custom_error_message=message)


def _what_data(values: Any) -> str:
    """Choose the section of the data by what it names."""
    for tag, key, section in (("parallel", "pairs", PairDataSettings), ("sharded", "shards", ShardDataSettings)):
        if isinstance(values, section) or (isinstance(values, Mapping) and key in values):
            return tag
    return "text"


class HeadSettings(Section):
    """A head beside the model's own: ``token`` scores the labels of every token, ``sequence`` those of a row.

    ``pool`` is which vector stands for a row: that of the first real token, of the last, or the mean.
    """

    kind: Literal["token", "sequence"]
    labels: Positive
    pool: Literal["first", "last", "mean"] = "last"


class ModelSettings(Section):
    """Which model: a family with its configuration in Hugging Face's names, a spec file, or one that exists.

    ``from`` is a run, a checkpoint, a Hugging Face folder or ``hf:org/name``: the run begins with its weights and,
    where the recipe names none, its tokenizer. ``heads`` are new ones by name; ``freeze`` has patterns of the
    parameters that stay as they are (``stack.blocks.0.*``). ``dropout`` replaces every dropout of the architecture by
    one rate on what the residuals add. ``embeddings`` is a word2vec file or a run of word vectors, whose rows the
    tokens that are words begin with.
    """

    family: str | None = None
    config: dict[str, Any] = {}
    spec: Path | None = None
    begin: str | None = Field(default=None, alias="from")
    heads: dict[str, HeadSettings] = {}
    freeze: tuple[str, ...] = ()
    dropout: Fraction | None = None
    embeddings: Path | None = None

    @model_validator(mode="after")
    def _one_of_three(self) -> "ModelSettings":
        if [self.family, self.spec, self.begin].count(None) != 2:
            raise PydanticCustomError("one_of", "exactly one of family, spec and from is needed")
        if self.begin is not None and (self.config or self.embeddings):
            what = {"what": "config" if self.config else "embeddings"}
            raise PydanticCustomError("from", "{what} belongs to a new model; this one begins from another", what)
        return self


class TokenizerSettings(Section):
    """Which tokenizer: one trained on the training text, or a file."""

    kind: Kind | None = None
    vocabulary: Several | None = None
    lowercase: bool = False
    file: Path | None = None

    @model_validator(mode="after")
    def _one_of_both(self) -> "TokenizerSettings":
        if (self.kind is None) == (self.file is None):
            raise PydanticCustomError("one_of", "exactly one of kind and file is needed")
        if self.file is not None and self.vocabulary is not None:
            raise PydanticCustomError("one_of", "a tokenizer from a file has its own vocabulary")
        if self.lowercase and self.kind in (None, "byte_bpe"):
            reason = "a tokenizer from a file decides that itself" if self.file else "byte_bpe gives back every byte"
            raise PydanticCustomError("lowercase", "lowercase cannot be: {reason}", {"reason": reason})
        return self


class SplitSettings(Section):
    """How validation text is held back: each n-th document by a hash of its name, or the text's tail."""

    every: Several | None = None
    tail: Part | None = None

    @model_validator(mode="after")
    def _one_of_both(self) -> "SplitSettings":
        if (self.every is None) == (self.tail is None):
            raise PydanticCustomError("one_of", "exactly one of every and tail is needed")
        return self


class MixtureSettings(Section):
    """One corpus of a mixture and its weight, a number of any size: only the weights' ratios count.

    ``name`` stands for the corpus in metrics; by default what ``train`` says. ``tokens`` is its size for
    ``orrery plan --data``, which counts the tokens where it is not given; training always counts.
    """

    train: str
    weight: AboveZero
    name: str | None = None
    tokens: Tokens | None = None

    @property
    def label(self) -> str:
        """What the corpus is called in metrics and tables."""
        return self.name or self.train


class DataSettings(Section):
    """Which text: a file, a folder or a named corpus for training, and its own or a split for validation.

    ``mixture`` names several corpora with weights in the place of ``train``; a split then applies to each.
    """

    train: str | None = None
    mixture: tuple[MixtureSettings, ...] | None = None
    val: str | None = None
    split: SplitSettings | None = None
    column: str = "text"
    invalid: Literal["error", "replace"] = "error"
    skip_bad: Count = 0

    @property
    def parts(self) -> tuple[MixtureSettings, ...]:
        """The corpora to train on; a single one is a mixture of one."""
        return self.mixture if self.mixture is not None else (MixtureSettings(train=str(self.train), weight=1),)

    @property
    def described(self) -> str:
        """The text in a few words: a source, or the sources of a mixture with their weights."""
        return self.train or ", ".join(f"{part.weight:g} x {part.train}" for part in self.parts)

    @model_validator(mode="after")
    def _train_or_mixture(self) -> "DataSettings":
        if (self.train is None) == (self.mixture is None):
            raise PydanticCustomError("one_of", "exactly one of train and mixture is needed")
        names = [part.label for part in self.parts]
        if not names or len(set(names)) != len(names):
            raise PydanticCustomError("mixture", "a mixture needs corpora with different names")
        return self

    @model_validator(mode="after")
    def _one_validation(self) -> "DataSettings":
        if self.val is not None and self.split is not None:
            raise PydanticCustomError("one_of", "val and split exclude each other")
        return self


class FilesSettings(Section):
    """Parallel text: two files, line n of ``target`` the translation of line n of ``source``."""

    source: str
    target: str


Pairs = FilesSettings | str


class PairDataSettings(Section):
    """Which pairs: two files, or a named set ("multi30k-en-de/train"), for training and for validation."""

    pairs: Pairs
    val: Pairs | None = None
    invalid: Literal["error", "replace"] = "error"
    skip_bad: Count = 0

    @property
    def described(self) -> str:
        """The pairs in a few words."""
        return self.pairs if isinstance(self.pairs, str) else f"{self.pairs.source} and {self.pairs.target}"


class ShardDataSettings(Section):
    """A folder of token shards that ``orrery data prepare`` wrote; the tokenizer is the file that made them."""

    shards: Path

    @property
    def described(self) -> str:
        """The folder's name."""
        return self.shards.name


class BatchSettings(Section):
    """How text becomes batches: ``size`` rows of at most ``length`` tokens."""

    kind: Literal["crops", "packed", "padded", "pairs"] = "crops"
    length: Positive
    size: Positive


class CausalSettings(Section):
    """Next-token prediction."""

    kind: Literal["causal"] = "causal"
    label_smoothing: Fraction = 0.0


class SequenceToSequenceSettings(Section):
    """Prediction of each target token from the source and the true tokens before it."""

    kind: Literal["seq2seq"] = "seq2seq"
    label_smoothing: Fraction = 0.0


class SgdSettings(Section):
    """Stochastic gradient descent, with momentum above 0."""

    kind: Literal["sgd"] = "sgd"
    rate: AboveZero
    momentum: Fraction = 0.0
    weight_decay: NotNegative = 0.0


class AdamSettings(Section):
    """Adam (Kingma and Ba 2015), without weight decay; the course's values are 0.9, 0.98 and 1e-9."""

    kind: Literal["adam"] = "adam"
    rate: AboveZero
    betas: tuple[Fraction, Fraction] = (0.9, 0.98)
    eps: AboveZero = 1e-9


class AdamWSettings(Section):
    """Adam with decoupled weight decay (Loshchilov and Hutter 2019), applied to matrices only."""

    kind: Literal["adamw"] = "adamw"
    rate: AboveZero
    betas: tuple[Fraction, Fraction] = (0.9, 0.95)
    eps: AboveZero = 1e-8
    weight_decay: NotNegative = 0.1


class ConstantSettings(Section):
    """A constant rate after ``warmup`` steps."""

    kind: Literal["constant"] = "constant"
    warmup: Count = 0


class CosineSettings(Section):
    """Half a cosine from 1 after ``warmup`` steps down to ``final``, a fraction of the rate."""

    kind: Literal["cosine"] = "cosine"
    warmup: Count = 0
    final: Share = 0.1


class LinearSettings(Section):
    """A straight line from 1 after ``warmup`` steps down to ``final``, a fraction of the rate."""

    kind: Literal["linear"] = "linear"
    warmup: Count = 0
    final: Share = 0.0


class WsdSettings(Section):
    """Warm up, stay, and decay in a straight line to ``final`` over the last ``decay`` steps."""

    kind: Literal["wsd"] = "wsd"
    warmup: Count = 0
    decay: Count
    final: Share = 0.0


class NoamSettings(Section):
    """Inverse square root with its own warm-up (Vaswani et al. 2017); the rate is a factor, often 1."""

    kind: Literal["noam"] = "noam"
    warmup: Positive = 4000
    width: Positive


Optimizer = Annotated[
    Annotated[SgdSettings, Tag("sgd")] | Annotated[AdamSettings, Tag("adam")] | Annotated[AdamWSettings, Tag("adamw")],
    kind_or("adamw", "adam", "sgd"),
]
Schedule = Annotated[
    Annotated[ConstantSettings, Tag("constant")]
    | Annotated[CosineSettings, Tag("cosine")]
    | Annotated[LinearSettings, Tag("linear")]
    | Annotated[WsdSettings, Tag("wsd")]
    | Annotated[NoamSettings, Tag("noam")],
    kind_or("cosine", "linear", "wsd", "noam", "constant"),
]
Objective = Annotated[
    Annotated[CausalSettings, Tag("causal")] | Annotated[SequenceToSequenceSettings, Tag("seq2seq")],
    kind_or("causal", "seq2seq"),
]
Data = Annotated[
    Annotated[DataSettings, Tag("text")]
    | Annotated[PairDataSettings, Tag("parallel")]
    | Annotated[ShardDataSettings, Tag("sharded")],
    Discriminator(_what_data),
]


class TrainingSettings(Section):
    """How to learn: steps, the split of a batch into ``micro_batch`` rows, optimizer and precision."""

    steps: Positive
    micro_batch: Positive | None = None
    optimizer: Optimizer
    schedule: Schedule = CosineSettings()
    clip: AboveZero | None = 1.0
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    device: Literal["auto", "cpu", "cuda"] = "auto"
    on_nonfinite: Literal["stop", "skip"] = "stop"
    skip_limit: Positive = 10

    @model_validator(mode="after")
    def _schedule_fits(self) -> "TrainingSettings":
        warmup, decay = self.schedule.warmup, getattr(self.schedule, "decay", 0)
        if warmup + decay > self.steps:
            parts = {"warmup": f"{warmup:,}", "decay": f"{decay:,}", "steps": f"{self.steps:,}"}
            form = "a schedule with warmup {warmup} and decay {decay} does not fit into {steps} steps"
            raise PydanticCustomError("schedule", form, parts)
        return self


class EvaluationSettings(Section):
    """When to measure, on how many batches (all by default), and a prompt to write a sample from."""

    every: Positive = 250
    batches: Positive | None = None
    sample: str | None = None


class CheckpointSettings(Section):
    """When to save, and how many of the last checkpoints to keep beside the best."""

    every: Positive = 500
    keep: Positive = 2


class LoggingSettings(Section):
    """After how many steps a line of metrics is written."""

    every: Positive = 10


class ExpectSettings(Section):
    """What the recipe should reach: a metric of ``metrics.jsonl`` at most ``bound``, within ``minutes``."""

    metric: str
    bound: Number
    minutes: AboveZero | None = None


class Recipe(Section):
    """One run, from text to a trained model."""

    name: RunName
    seed: Seed = 1337
    model: ModelSettings
    tokenizer: TokenizerSettings | None = None
    data: Data
    batches: BatchSettings
    objective: Objective = CausalSettings()
    training: TrainingSettings
    evaluation: EvaluationSettings = EvaluationSettings()
    checkpoints: CheckpointSettings = CheckpointSettings()
    logging: LoggingSettings = LoggingSettings()
    expect: ExpectSettings | None = None

    @property
    def text(self) -> DataSettings:
        """The text to train on. Raises `UsageError` where the recipe has pairs or shards."""
        if not isinstance(self.data, DataSettings):
            raise UsageError(f"{self.name}: the recipe's data are no text, and here one is needed", "give data.train")
        return self.data

    @model_validator(mode="after")
    def _of_one_kind(self) -> "Recipe":
        pairs = isinstance(self.data, PairDataSettings)
        if pairs != (self.batches.kind == "pairs") or pairs != (self.objective.kind == "seq2seq"):
            message = "data.pairs, batches.kind pairs and objective.kind seq2seq belong together; here {found}"
            found = f"{'data.pairs' if pairs else 'data.train'}, {self.batches.kind} and {self.objective.kind}"
            raise PydanticCustomError("kinds", message, {"found": found})
        if self.tokenizer is None and self.model.begin is None:
            raise PydanticCustomError("tokenizer", "tokenizer is missing: only model.from brings one")
        if isinstance(self.data, ShardDataSettings) and self.tokenizer is not None and self.tokenizer.file is None:
            raise PydanticCustomError("kinds", "data.shards needs tokenizer.file: the tokenizer that made them")
        return self

    @model_validator(mode="after")
    def _measured(self) -> "Recipe":
        known = self._measures()
        if self.expect is not None and self.expect.metric not in known:
            parts = {"metric": self.expect.metric[:100], "known": ", ".join(known)}
            raise PydanticCustomError("metric", "expect.metric {metric} is never measured here; known: {known}", parts)
        return self

    def _measures(self) -> list[str]:
        """Return the names of what this run measures."""
        data = self.data
        held_back = getattr(data, "val", None) or getattr(data, "split", None) or isinstance(data, ShardDataSettings)
        mixture = [part.label for part in data.mixture or ()] if isinstance(data, DataSettings) else []
        corpora = ["pairs"] if isinstance(data, PairDataSettings) else mixture
        # Bits a byte are of text: in a translation the bytes of the source are read too.
        of_text = HELD_BACK[:2] if isinstance(data, PairDataSettings) else HELD_BACK
        return [*MEASURES, *(of_text if held_back else ()), *(f"epochs/{name}" for name in corpora)]
