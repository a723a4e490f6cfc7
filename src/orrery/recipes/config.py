"""A recipe: all that decides a run, as closed and checked settings; importing it imports no torch."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, SerializeAsAny, Tag, model_validator
from pydantic_core import PydanticCustomError

from orrery.data.sources import SOURCES, Source, SourceSettings
from orrery.metrics import METRICS, MetricSettings, possible
from orrery.models.heads import HEADS, HeadSettings
from orrery.objectives import OBJECTIVES, Objective
from orrery.recipes.generation import GenerationSettings
from orrery.recipes.parallel import ParallelSettings, uncompiled
from orrery.reports.observers import OBSERVERS
from orrery.rewards import REWARDS, RewardSettings
from orrery.schema.numbers import (
    AboveZero,
    Count,
    Factor,
    Fraction,
    NotNegative,
    Number,
    Positive,
    Seed,
    Several,
    Share,
)
from orrery.schema.registry import name_of
from orrery.schema.section import Section, kind_or
from orrery.text.kinds import TOKENIZERS, Chat, Frame

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
"""The measures of each line of metrics."""


def kind_of_data(values: Mapping[str, Any]) -> str:
    """Return the kind of data that a section without ``kind`` means: the one that a key is named after, else text."""
    return next((name for name in SOURCES.names() if name in values), "text")


DataSection = Annotated[SerializeAsAny[SourceSettings], SOURCES, SOURCES.section(kind_of_data)]
ObjectiveSection = Annotated[
    SerializeAsAny[Section], OBJECTIVES, OBJECTIVES.section(lambda values: "causal", alone=True)
]
MetricSection = Annotated[SerializeAsAny[MetricSettings], METRICS, METRICS.section(alone=True)]
ObserverSection = Annotated[SerializeAsAny[Section], OBSERVERS, OBSERVERS.section(alone=True)]
RewardSection = Annotated[SerializeAsAny[RewardSettings], REWARDS, REWARDS.section(alone=True)]
TokenizerName = Annotated[str, TOKENIZERS.known()]
HeadSection = Annotated[SerializeAsAny[HeadSettings], HEADS, HEADS.section()]


class PartOrigins(Section):
    """What parts of a new model begin with: ``encoder`` is a model that has one of the same shape."""

    encoder: str


class ModelSettings(Section):
    """Which model: a family with its configuration in Hugging Face's names, a spec file, or one that exists.

    ``from`` is a run, a checkpoint, a Hugging Face folder or ``hf:org/name``: the run begins with its weights and,
    where the recipe names none, its tokenizer. ``heads`` are new ones by name; ``freeze`` has patterns of the
    parameters that stay as they are (``stack.blocks.0.*``). ``dropout`` replaces every dropout of the architecture by
    one rate on what the residuals add. ``mask: prefix`` lets a decoder read the beginning of a row in both directions;
    the model is then saved with its own spec, as no published layout says so. ``embeddings`` is a word2vec file or a
    run of word vectors, whose rows the tokens that are words begin with. ``adapter`` is a transform with its settings
    (``kind: lora``), applied to a model that exists: it and the new heads learn alone. ``from`` may also say what
    parts of a new model begin with: ``from: {encoder: MODEL}`` beside ``family``.
    """

    family: str | None = None
    config: dict[str, Any] = Field(default_factory=dict)
    spec: Path | None = None
    origin: str | PartOrigins | None = Field(default=None, alias="from")
    heads: dict[str, HeadSection] = Field(default_factory=dict)
    freeze: tuple[str, ...] = ()
    dropout: Fraction | None = None
    mask: Literal["prefix"] | None = None
    embeddings: Path | None = None
    adapter: dict[str, Any] | None = None

    @property
    def begin(self) -> str | None:
        """The model that exists and is gone on with, or nothing where this one is new."""
        return self.origin if isinstance(self.origin, str) else None

    @property
    def encoder(self) -> str | None:
        """The model whose encoder a new one begins with."""
        return self.origin.encoder if isinstance(self.origin, PartOrigins) else None

    @model_validator(mode="before")
    @classmethod
    def _spelled_before(cls, values: Any) -> Any:
        """Take ``encoder`` beside ``family``, as the first recipes of captions had it, for ``from: {encoder: ...}``."""
        if not isinstance(values, Mapping) or "encoder" not in values:
            return values
        others = {key: value for key, value in values.items() if key != "encoder"}
        if values["encoder"] is None:
            return others
        if others.get("from") is not None:
            raise PydanticCustomError("from", "encoder belongs to a new model; this one begins from another")
        return {**others, "from": {"encoder": values["encoder"]}}

    @model_validator(mode="after")
    def _one_of_three(self) -> "ModelSettings":
        if [self.family, self.spec, self.begin].count(None) != 2:
            raise PydanticCustomError("one_of", "exactly one of family, spec and from is needed")
        if self.begin is not None and (self.config or self.embeddings):
            what = {"what": "config" if self.config else "embeddings"}
            raise PydanticCustomError("from", "{what} belongs to a new model; this one begins from another", what)
        if self.adapter is not None and (self.begin is None or self.freeze):
            reason = (
                "freezes the model itself: leave freeze out" if self.freeze else "changes a model that exists: from"
            )
            raise PydanticCustomError("adapter", "an adapter {reason}", {"reason": reason})
        return self


class TokenizerSettings(Section):
    """Which tokenizer: one trained on the training text or on that of ``train``, a file or named set; or a file.

    ``frame`` gives a trained one the special tokens of a family, which ``vocabulary`` counts too: ``bert`` ([CLS] A
    [SEP] B [SEP], [MASK]), ``roberta`` or ``t5`` (A </s>, sentinels). ``chat`` gives it the control tokens of a chat
    format, so that conversations can be learnt later without new ones; ``vocabulary`` counts these too.
    """

    kind: TokenizerName | None = None
    vocabulary: Several | None = None
    lowercase: bool = False
    frame: Frame | None = None
    chat: Chat | None = None
    train: str | None = None
    file: Path | None = None

    @model_validator(mode="after")
    def _one_of_both(self) -> "TokenizerSettings":
        if (self.kind is None) == (self.file is None):
            raise PydanticCustomError("one_of", "exactly one of kind and file is needed")
        if self.file is not None and self.vocabulary is not None:
            raise PydanticCustomError("one_of", "a tokenizer from a file has its own vocabulary")
        if self.file is not None and (self.frame is not None or self.chat is not None):
            raise PydanticCustomError("one_of", "a tokenizer from a file has its own special tokens")
        if self.file is not None and self.train is not None:
            raise PydanticCustomError("one_of", "a tokenizer from a file is trained already")
        if self.lowercase and (self.kind is None or TOKENIZERS.find(self.kind).exact):
            own = f"{self.kind} gives back every byte"
            reason = "a tokenizer from a file decides that itself" if self.file else own
            raise PydanticCustomError("lowercase", "lowercase cannot be: {reason}", {"reason": reason})
        return self


class BatchSettings(Section):
    """How examples become batches: rows of at most ``length`` tokens, in a way that the data source knows.

    A batch has ``size`` rows, or as many as stay within ``tokens`` positions on each side, padding among them.
    """

    kind: str
    length: Positive
    size: Positive | None = None
    tokens: Positive | None = None

    @property
    def most_rows(self) -> int:
        """Rows of a batch at most: a row has one token at least."""
        return self.size or self.tokens or 0

    @property
    def positions(self) -> int:
        """Positions of a batch at most."""
        return self.tokens or self.most_rows * self.length

    @model_validator(mode="after")
    def _one_of_both(self) -> "BatchSettings":
        if (self.size is None) == (self.tokens is None):
            raise PydanticCustomError("one_of", "exactly one of size (rows) and tokens (positions) is needed")
        if self.tokens is not None and self.tokens < self.length:
            parts = {"tokens": f"{self.tokens:,}", "length": f"{self.length:,}"}
            raise PydanticCustomError("tokens", "tokens {tokens} cannot hold a row of length {length}", parts)
        return self


class SgdSettings(Section):
    """Stochastic gradient descent, with momentum above 0."""

    kind: Literal["sgd"] = "sgd"
    rate: AboveZero
    momentum: Fraction = 0.0
    weight_decay: NotNegative = 0.0


class AdamSettings(Section):
    """Adam (Kingma and Ba 2015), without weight decay; the course's values are 0.9, 0.98 and 1e-9.

    ``layer_decay`` lowers the rate from block to block towards the embeddings.
    """

    kind: Literal["adam"] = "adam"
    rate: AboveZero
    betas: tuple[Fraction, Fraction] = (0.9, 0.98)
    eps: AboveZero = 1e-9
    layer_decay: Factor = 1.0


class AdamWSettings(Section):
    """Adam with decoupled weight decay (Loshchilov and Hutter 2019), applied to matrices only; see `AdamSettings`."""

    kind: Literal["adamw"] = "adamw"
    rate: AboveZero
    betas: tuple[Fraction, Fraction] = (0.9, 0.95)
    eps: AboveZero = 1e-8
    weight_decay: NotNegative = 0.1
    layer_decay: Factor = 1.0


class MuonSettings(Section):
    """Muon (Jordan et al. 2024) for the matrices inside the blocks, AdamW with ``betas`` and ``eps`` for the rest.

    ``rate`` and ``weight_decay`` serve both (Liu et al. 2025); see `AdamSettings` for ``layer_decay``.
    """

    kind: Literal["muon"] = "muon"
    rate: AboveZero
    momentum: Fraction = 0.95
    betas: tuple[Fraction, Fraction] = (0.9, 0.95)
    eps: AboveZero = 1e-8
    weight_decay: NotNegative = 0.1
    layer_decay: Factor = 1.0


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
    Annotated[SgdSettings, Tag("sgd")]
    | Annotated[AdamSettings, Tag("adam")]
    | Annotated[AdamWSettings, Tag("adamw")]
    | Annotated[MuonSettings, Tag("muon")],
    kind_or("adamw", "adam", "sgd", "muon"),
]
Schedule = Annotated[
    Annotated[ConstantSettings, Tag("constant")]
    | Annotated[CosineSettings, Tag("cosine")]
    | Annotated[LinearSettings, Tag("linear")]
    | Annotated[WsdSettings, Tag("wsd")]
    | Annotated[NoamSettings, Tag("noam")],
    kind_or("cosine", "linear", "wsd", "noam", "constant"),
]


class TrainingSettings(Section):
    """How to learn: steps, the split of a batch into ``micro_batch`` rows, optimizer and precision.

    ``final`` says which model the run leaves: the last, or the best of those that were evaluated.
    """

    steps: Positive
    micro_batch: Positive | None = None
    optimizer: Optimizer
    schedule: Schedule = CosineSettings()
    clip: AboveZero | None = 1.0
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    device: Literal["auto", "cpu", "cuda"] = "auto"
    on_nonfinite: Literal["stop", "skip"] = "stop"
    skip_limit: Positive = 10
    final: Literal["last", "best"] = "last"

    @model_validator(mode="after")
    def _schedule_fits(self) -> "TrainingSettings":
        warmup, decay = self.schedule.warmup, getattr(self.schedule, "decay", 0)
        if warmup + decay > self.steps:
            parts = {"warmup": f"{warmup:,}", "decay": f"{decay:,}", "steps": f"{self.steps:,}"}
            form = "a schedule with warmup {warmup} and decay {decay} does not fit into {steps} steps"
            raise PydanticCustomError("schedule", form, parts)
        return self


class EvaluationSettings(Section):
    """When to measure, on how many batches (all by default), and a prompt to write a sample from.

    ``metrics`` are measured beside those that the objective names; ``best`` is the one that decides which model is the
    best, by default the objective's first. The run ends early after ``patience`` evaluations without a better value.
    """

    every: Positive = 250
    batches: Positive | None = None
    sample: str | None = None
    metrics: tuple[MetricSection, ...] = ()
    best: str | None = None
    patience: Positive | None = None


MEASURING = ("best", "patience", "metrics", "sample")
"""What of an evaluation means nothing where no data are held back."""


class CheckpointSettings(Section):
    """When to save, and how many of the last checkpoints to keep beside the best."""

    every: Positive = 500
    keep: Positive = 2


class LoggingSettings(Section):
    """After how many steps a line of metrics is written, and who is told of the run beside its folder."""

    every: Positive = 10
    observers: tuple[ObserverSection, ...] = ()

    @model_validator(mode="after")
    def _named_once(self) -> "LoggingSettings":
        names = [name_of(OBSERVERS.class_of(each)) for each in self.observers]
        if twice := [name for name in names if names.count(name) > 1]:
            raise PydanticCustomError("kinds", "the observer {name} is named twice", {"name": twice[0]})
        return self


class ExpectSettings(Section):
    """What the recipe should reach: a metric of ``metrics.jsonl`` at most ``bound``, within ``minutes``.

    Where more is better, as with accuracy, the metric should be at least ``bound``.
    """

    metric: str
    bound: Number
    minutes: AboveZero | None = None


def _causal() -> Section:
    return OBJECTIVES.find("causal").Settings()


def _needed(objective: Any) -> set[str]:
    """Return the fields that an objective needs, of its section as it is written; nothing where that is no section."""
    name = objective.get("kind") if isinstance(objective, Mapping) else objective
    if not isinstance(name, str) or name not in OBJECTIVES.names():
        return set()
    return set(OBJECTIVES.find(name).needs)


class Recipe(Section):
    """One run, from data to a trained model; ``task`` names what ``orrery finetune`` scores it in at the end.

    ``rewards`` judge what the model writes, where the data are prompts that it answers; their weighted sum is learned.
    """

    name: RunName
    task: str | None = None
    seed: Seed = 1337
    model: ModelSettings
    tokenizer: TokenizerSettings | None = None
    data: DataSection
    batches: BatchSettings
    objective: ObjectiveSection = Field(default_factory=_causal)
    rewards: tuple[RewardSection, ...] = ()
    training: TrainingSettings
    parallel: ParallelSettings = ParallelSettings()
    generation: GenerationSettings = GenerationSettings()
    evaluation: EvaluationSettings = EvaluationSettings()
    checkpoints: CheckpointSettings = CheckpointSettings()
    logging: LoggingSettings = LoggingSettings()
    expect: ExpectSettings | None = None

    @property
    def source_class(self) -> type[Source]:
        """The kind of data source."""
        return SOURCES.class_of(self.data)

    @property
    def objective_class(self) -> type[Objective]:
        """The kind of objective."""
        return OBJECTIVES.class_of(self.objective)

    @property
    def measured(self) -> dict[str, MetricSettings]:
        """What is measured on examples held back, by name: the objective's metrics, then those asked for."""
        usual = self.objective_class.measured(self.objective)
        known = possible([each["kind"] for each in usual], self.source_class.counts_bytes)
        settings = [known[each["kind"]].Settings(**each) for each in usual if each["kind"] in known]
        return {metric.label: metric for metric in (*settings, *self.evaluation.metrics)}

    @model_validator(mode="before")
    @classmethod
    def _batches_of_the_source(cls, values: Any) -> Any:
        """Take the first kind of batches that the objective can read where none is named.

        Rows of what is no text have no length.
        """
        data, batches = (values.get(key) if isinstance(values, Mapping) else None for key in ("data", "batches"))
        if not isinstance(data, Mapping) or not isinstance(batches, Mapping):
            return values
        kind = data.get("kind", kind_of_data(data))
        if not isinstance(kind, str) or kind not in SOURCES.names():
            return values  # refused where the data are read
        source = SOURCES.find(kind)
        needed = _needed(values.get("objective"))
        suiting = [each for each in source.batch_kinds if needed <= set(source.fields(each))]
        first = (*suiting, *source.batch_kinds)[0]
        usual: dict[str, Any] = {"kind": first} | ({} if source.needs_tokenizer else {"length": 1})
        return {**values, "batches": usual | dict(batches)}

    @model_validator(mode="after")
    def _fields_fit(self) -> "Recipe":
        source, objective, data = self.source_class, self.objective_class, self.data.kind
        if self.batches.kind not in source.batch_kinds:
            parts = {"kind": self.batches.kind[:100], "data": data, "known": ", ".join(source.batch_kinds)}
            raise PydanticCustomError("kinds", "batches.kind {kind}: data of kind {data} come as {known}", parts)
        if self.batches.tokens is not None and self.batches.kind not in source.by_tokens:
            parts = {"kind": self.batches.kind, "data": data}
            message = "batches.tokens: {kind} of kind {data} are counted in rows; name size, tokens / length of them"
            raise PydanticCustomError("kinds", message, parts)
        gives = source.fields(self.batches.kind)
        names = {"objective": getattr(self.objective, "kind", ""), "data": data, "gives": ", ".join(gives)}
        if missing := [name for name in objective.needs if name not in gives]:
            message = "the objective {objective} needs {missing}, and data of kind {data} give {gives}"
            raise PydanticCustomError("kinds", message, {**names, "missing": ", ".join(missing)})
        if unread := [name for name in source.must_be_read if name not in objective.needs]:
            others = [name for name in OBJECTIVES.names() if set(unread) <= set(OBJECTIVES.find(name).needs)]
            message = "the objective {objective} does not read {unread}, which data of kind {data} are about; {others}"
            fitting = f"objectives that do: {', '.join(others) or 'none'}"
            raise PydanticCustomError("kinds", message, {**names, "unread": ", ".join(unread), "others": fitting})
        return self

    @model_validator(mode="before")
    @classmethod
    def _micro_batch_of_the_plan(cls, values: Any) -> Any:
        """Take ``parallel.micro``, as a plan prints it, in the place of ``training.micro_batch``."""
        parallel, training = (
            values.get(key) if isinstance(values, Mapping) else None for key in ("parallel", "training")
        )
        if not isinstance(parallel, Mapping) or not isinstance(training, Mapping) or parallel.get("micro") is None:
            return values
        return {**values, "training": {**training, "micro_batch": parallel["micro"]}}

    @model_validator(mode="after")
    def _compiled_alone(self) -> "Recipe":
        if self.parallel.compile and (other := uncompiled(self.parallel, judged=bool(self.rewards))):
            raise PydanticCustomError("compile", "parallel.compile with {other}; leave it out", {"other": other})
        return self

    @model_validator(mode="after")
    def _rewards_fit(self) -> "Recipe":
        judged = "rewards" in self.source_class.fields(self.batches.kind)
        if judged != bool(self.rewards):
            message = "data of kind {data} are judged by no reward: leave rewards out"
            if judged:
                message = "rewards is missing: say what an answer is worth; known: {known}"
            raise PydanticCustomError("kinds", message, {"data": self.data.kind, "known": ", ".join(REWARDS.names())})
        labels = [reward.label for reward in self.rewards]
        if twice := [label for label in labels if labels.count(label) > 1]:
            raise PydanticCustomError("kinds", "two rewards are called {name}: name one", {"name": twice[0]})
        return self

    @model_validator(mode="after")
    def _tokenizer_fits(self) -> "Recipe":
        if self.tokenizer is None and self.model.begin is None and self.source_class.needs_tokenizer:
            raise PydanticCustomError("tokenizer", "tokenizer is missing: only model.from brings one")
        named = self.tokenizer is None or self.tokenizer.file is not None or self.tokenizer.train is not None
        if not named and not self.source_class.gives_text:
            message = "data of kind {data} give no text to train a tokenizer on: name tokenizer.train or tokenizer.file"
            raise PydanticCustomError("kinds", message, {"data": self.data.kind})
        return self

    @property
    def decides(self) -> str:
        """The name of the metric that decides which model is the best."""
        return self.evaluation.best or next(iter(self.measured))

    @property
    def measuring(self) -> list[str]:
        """The keys that ask for what is measured on examples held back."""
        measured = {f"evaluation.{key}": getattr(self.evaluation, key) for key in MEASURING}
        measured["training.final best"] = self.training.final == "best"
        return [key for key, value in measured.items() if value]

    @model_validator(mode="after")
    def _something_decides(self) -> "Recipe":
        if not self.data.holds_back and self.measuring:
            message = "no data are held back to measure on; name data.val or data.split, or leave it out"
            raise PydanticCustomError("metric", message, {"key": self.measuring[0]})
        return self

    @model_validator(mode="after")
    def _is_measured(self) -> "Recipe":
        held_back = [f"val/{name}" for name in self.measured] if self.data.holds_back else []
        reported = [f"train/{name}" for name in self.objective_class.of(self.objective).reports]
        known = [*MEASURES, *reported, *held_back, *(f"epochs/{name}" for name in self.data.counted)]
        if self.expect is not None and self.expect.metric not in known:
            parts = {"metric": self.expect.metric[:100], "known": ", ".join(known)}
            raise PydanticCustomError("metric", "expect.metric {metric} is never measured here; known: {known}", parts)
        labels = [metric.label for metric in self.evaluation.metrics]
        usual = [each["kind"] for each in self.objective_class.measured(self.objective)]
        if twice := [name for name in labels if labels.count(name) > 1 or name in usual]:
            message = "evaluation.metrics: {name} is measured already; give this one a name of its own"
            raise PydanticCustomError("metric", message, {"name": twice[0]})
        if self.evaluation.best is not None and self.evaluation.best not in self.measured:
            parts = {"best": self.evaluation.best[:100], "known": ", ".join(self.measured)}
            raise PydanticCustomError("metric", "evaluation.best {best} is never measured here; known: {known}", parts)
        return self
