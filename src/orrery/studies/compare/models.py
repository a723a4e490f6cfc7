"""The models that are compared: a recipe of each, with as many parameters as asked for."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from orrery.errors import UsageError
from orrery.families import load_family
from orrery.models.distinct_blocks import distinct_blocks
from orrery.recipes.config import Recipe
from orrery.recipes.read import check_recipe, plain, set_dotted

TOLERANCE = 0.02
"""How far a model may be from the number of parameters asked for."""

COUNTS = "ngram"
"""The model that is counted and not trained."""


@dataclass(frozen=True)
class ModelKind:
    """A way to build a model of any size: its family, what is fixed, and the rate that a sweep begins with.

    ``step`` is what the width must be a multiple of, ``scaled`` are keys that are a part of the width; ``inner``
    names a second number that fills the rest, ``ratio`` times the width to begin with.
    """

    family: str
    rate: float
    fixed: Mapping[str, Any] = field(default_factory=dict)
    step: int = 1
    scaled: Mapping[str, float] = field(default_factory=dict)
    inner: str | None = None
    ratio: float = 8 / 3

    def config(self, width: int, inner: int | None = None) -> dict[str, Any]:
        """Return the configuration of one size; the inner number is its ratio of the width unless it is given."""
        settings = {"hidden_size": width, "tie_word_embeddings": False, **self.fixed}
        settings |= {key: max(1, int(part * width)) for key, part in self.scaled.items()}
        if self.inner is None:
            return settings
        return {**settings, self.inner: max(1, int(self.ratio * width)) if inner is None else inner}


def linear(family: str, keys: float, values: float) -> ModelKind:
    """Return Llama's block around a memory of outer products, with four heads; together they have so many widths."""
    scaled = {"key_head_dim": keys / 4, "value_head_dim": values / 4}
    fixed = {"num_hidden_layers": 4, "num_heads": 4}
    return ModelKind(family, 2e-3, fixed, step=8, scaled=scaled, inner="intermediate_size")


FOUR = {"num_hidden_layers": 4}
KINDS: Mapping[str, ModelKind] = {
    "nplm": ModelKind("nplm", 3e-3, {"order": 8, "direct": False}),
    "elman_rnn": ModelKind("elman_rnn", 2e-3, {"num_layers": 2}),
    "lstm": ModelKind("lstm", 5e-3, {"num_layers": 2}),
    "gru": ModelKind("gru", 4e-3, {"num_layers": 2}),
    "transformer": ModelKind("llama", 2e-3, {**FOUR, "num_attention_heads": 4}, step=8, inner="intermediate_size"),
    "s4": ModelKind("s4", 2e-3, FOUR, inner="intermediate_size"),
    "s4d": ModelKind("s4d", 2e-3, FOUR, inner="intermediate_size"),
    "hyena": ModelKind("hyena", 2e-3, FOUR, inner="intermediate_size"),
    "linear_transformer": linear("linear_transformer", 1.0, 1.0),
    "retnet": linear("retnet", 1.0, 2.0),
    "rwkv": ModelKind("rwkv", 2e-3, FOUR, inner="intermediate_size"),
    "mamba": ModelKind("mamba", 3e-3, FOUR),
    "mamba2": ModelKind(
        "mamba2",
        3e-3,
        {**FOUR, "num_heads": 4, "n_groups": 1},
        step=2,
        scaled={"head_dim": 0.5},
        inner="state_size",
        ratio=0.2,
    ),
    "gla": linear("gla", 0.5, 1.0),
    "gated_deltanet": linear("gated_deltanet", 1.0, 1.0),
    "based": ModelKind(
        "based",
        2e-3,
        {**FOUR, "num_heads": 4, "feature_dim": 8, "sliding_window": 32},
        step=8,
        inner="intermediate_size",
    ),
    "jamba": ModelKind(
        "jamba",
        2e-3,
        {
            **FOUR,
            "num_attention_heads": 4,
            "num_key_value_heads": 4,
            "num_experts": 1,
            "num_experts_per_tok": 1,
            "attn_layer_period": 2,
            "attn_layer_offset": 1,
        },
        step=4,
        inner="intermediate_size",
    ),
}
"""What the built-in models are: one entry is all that a new one needs."""

MODELS: Sequence[str] = (COUNTS, *KINDS)


def refuse_unknown(names: Sequence[str]) -> None:
    """Refuse what is no model, or named twice.

    Raises:
        UsageError: names it, and what there is.
    """
    for name in names:
        if name not in MODELS or names.count(name) > 1:
            fault = "twice" if name in MODELS else "not a model that can be compared"
            raise UsageError(f"--models: {name!r} is {fault}", f"there are: {', '.join(MODELS)}")


def recipe_of(name: str, base: Recipe, vocabulary: int, parameters: int) -> Recipe:
    """Return the recipe of one kind with ``parameters`` parameters, to within two percent.

    Raises:
        UsageError: no width comes that close.
    """
    kind = KINDS[name]
    values = plain(base) | {"name": name}
    fixed = {"max_position_embeddings": base.batches.length}
    config = fitted(kind, {"vocab_size": vocabulary, **fixed}, parameters)
    set_dotted(values, "model", {"family": kind.family, "config": {**config, **fixed}, "dropout": base.model.dropout})
    set_dotted(values, "training.optimizer.rate", kind.rate)
    return check_recipe(values, f"the recipe of {name}")


def fitted(kind: ModelKind, shared: Mapping[str, Any], parameters: int, tolerance: float = TOLERANCE) -> dict[str, Any]:
    """Return the configuration whose number of parameters is nearest to the one asked for.

    Raises:
        UsageError: no width comes that close.
    """

    def size(config: Mapping[str, Any]) -> int:
        return parameters_of(kind.family, {**shared, **config})

    steps = largest(lambda n: size(kind.config(n * kind.step)) <= parameters)
    width = max(1, steps) * kind.step
    configs = [kind.config(width), kind.config(width + kind.step)]
    if kind.inner is not None:
        inner = max(1, largest(lambda n: size(kind.config(width, n)) <= parameters))
        configs = [kind.config(width, inner), kind.config(width, inner + 1)]
    best = min(configs, key=lambda config: abs(size(config) - parameters))
    if abs(size(best) - parameters) > tolerance * parameters:
        near = f"to within {100 * tolerance:g} %: the nearest has {size(best):,}"
        message = f"no {kind.family} has {parameters:,} parameters {near}"
        raise UsageError(message, "ask for more --parameters, or make the vocabulary smaller")
    return best


def parameters_of(family: str, config: Mapping[str, Any]) -> int:
    """Return how many parameters a family has under a configuration, without building it."""
    return distinct_blocks(load_family(family).spec(config)).parameters()


def largest(holds: Callable[[int], bool]) -> int:
    """Return the largest n >= 0 for which a condition holds that holds up to some n and then no more."""
    high = 1
    while holds(high):
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
