"""Reading the rotary settings of a ``config.json``, in the old form and in the new."""

import math
from collections.abc import Callable, Container, Mapping
from typing import Any

from orrery.errors import ModelFileError
from orrery.families._config import Config
from orrery.nn.positions.rotary import Dynamic, Linear, Llama3, Rotary, Scaling, Unscaled, Yarn

DEFAULTS: Mapping[str, Any] = {"rope_theta": 10_000.0, "rope_scaling": None, "rope_parameters": None}
"""The keys that this reader uses; a family adds them to its own."""

_COMMON = {"rope_type", "type", "rope_theta", "partial_rotary_factor", "original_max_position_embeddings"}


def rotary(
    config: Config, head_width: int, context: int, *, share: float = 1.0, kinds: Container[str] | None = None
) -> Rotary.Spec:
    """Return the rotary spec of a configuration.

    Args:
        config: the family's view of it.
        head_width: channels of a head.
        context: the length the model is meant for.
        share: of a head's channels that turn, where the rotary settings do not say.
        kinds: the scalings that the family has; by default all that are known.

    Raises:
        ModelFileError: an unknown kind of scaling, or a key that it does not have.
    """
    given = config["rope_scaling"] or config["rope_parameters"] or {}
    return from_settings(config.family, given, config["rope_theta"], head_width, context, share=share, kinds=kinds)


def from_settings(
    family: str,
    given: Mapping[str, Any],
    base: float,
    head_width: int,
    context: int,
    *,
    share: float = 1.0,
    kinds: Container[str] | None = None,
) -> Rotary.Spec:
    """Return the same from one set of settings, for a family that has several; ``base`` counts where they name none.

    Raises:
        ModelFileError: an unknown kind of scaling, or a key that it does not have.
    """
    kind = given.get("rope_type", given.get("type", "default"))
    known = [name for name in _READERS if kinds is None or name in kinds]
    if kind not in known:
        raise ModelFileError(f"{family}: rotary scaling {kind!r} is not known", f"known: {', '.join(known)}")
    keys, read = _READERS[kind]
    if unknown := sorted(set(given) - keys - _COMMON):
        raise ModelFileError(
            f"{family}: rotary scaling {kind!r} has the unknown keys {', '.join(unknown)}",
            "they could change the numbers; remove them if you know that they do not",
        )
    return Rotary.Spec(
        width=int(head_width * given.get("partial_rotary_factor", share)),
        base=float(given.get("rope_theta", base)),
        scaling=read(given, int(given.get("original_max_position_embeddings") or context)),
    )


def yarn_temperature(factor: float, weight: float = 1.0) -> float:
    """Return YaRN's factor on queries and keys, ``0.1 weight ln(factor) + 1`` (Peng et al. 2023, section 3.4)."""
    return 0.1 * weight * math.log(factor) + 1.0 if factor > 1 else 1.0


def _yarn(given: Mapping[str, Any], trained: int) -> Scaling:
    temperature, factor = given.get("attention_factor"), float(given["factor"])
    rotated, everywhere = given.get("mscale"), given.get("mscale_all_dim")
    if temperature is None and rotated and everywhere:  # DeepSeek: the scores take the temperature of all channels
        temperature = yarn_temperature(factor, rotated) / yarn_temperature(factor, everywhere)
    return Yarn(
        factor=factor,
        trained=trained,
        fast=float(given.get("beta_fast") or 32),
        slow=float(given.get("beta_slow") or 1),
        temperature=None if temperature is None else float(temperature),
        truncate=given.get("truncate", True),
    )


def _llama3(given: Mapping[str, Any], trained: int) -> Scaling:
    low, high = (float(given[f"{end}_freq_factor"]) for end in ("low", "high"))
    return Llama3(factor=float(given["factor"]), low_frequency=low, high_frequency=high, trained=trained)


_Reader = Callable[[Mapping[str, Any], int], Scaling]
_READERS: dict[str, tuple[set[str], _Reader]] = {
    "default": (set(), lambda given, trained: Unscaled()),
    "linear": ({"factor"}, lambda given, trained: Linear(factor=float(given["factor"]))),
    "dynamic": ({"factor"}, lambda given, trained: Dynamic(factor=float(given["factor"]), trained=trained)),
    "yarn": ({"factor", "beta_fast", "beta_slow", "attention_factor", "truncate", "mscale", "mscale_all_dim"}, _yarn),
    "llama3": ({"factor", "low_freq_factor", "high_freq_factor"}, _llama3),
}
