"""Reading the rotary settings of a ``config.json``, in the old form and in the new."""

import math
from collections.abc import Callable, Container, Mapping
from typing import Any

from orrery.errors import ModelFileError
from orrery.families._config import Config
from orrery.families._keys import positive, table
from orrery.nn.positions.longrope import LongRope
from orrery.nn.positions.rotary import Dynamic, Linear, Llama3, Rotary, Scaling, Unscaled, Yarn

DEFAULTS: Mapping[str, Any] = {"rope_theta": positive(10_000.0), "rope_scaling": table(), "rope_parameters": table()}
"""The keys that this reader uses; a family adds them to its own."""

_WHERE = "rope_parameters (or rope_scaling)"
_COMMON = {"rope_type", "type", "rope_theta", "partial_rotary_factor", "original_max_position_embeddings"}


def rotary(
    config: Config, head_width: int, context: int, *, share: float | None = None, kinds: Container[str] | None = None
) -> Rotary.Spec:
    """Return the rotary spec of a configuration.

    Args:
        config: the family's view of it.
        head_width: channels of a head.
        context: the length the model is meant for.
        share: of a head's channels that turn, where the rotary settings do not say; by default all do, always.
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
    share: float | None = None,
    kinds: Container[str] | None = None,
) -> Rotary.Spec:
    """Return the same from one set of settings, for a family that has several; ``base`` counts where they name none.

    Raises:
        ModelFileError: an unknown kind of scaling, or a key that it does not have.
    """
    kind = given.get("rope_type", given.get("type", "default"))
    known = [name for name in _READERS if kinds is None or name in kinds]
    if kind not in known:
        raise ModelFileError(
            f"{family}: {_WHERE}: rope_type = {kind!r}, a rotary scaling, is not known", f"known: {', '.join(known)}"
        )
    keys, read = _READERS[kind]
    if unknown := sorted(set(given) - keys - _COMMON):
        raise ModelFileError(
            f"{family}: {_WHERE}: rope_type {kind!r} has the unknown keys {', '.join(unknown)}",
            "they could change the numbers; remove them if you know that they do not",
        )
    width = _turning(family, given, head_width, share)
    if kind == "dynamic" and width <= 2:
        raise ModelFileError(
            f"{family}: {_WHERE}: rope_type 'dynamic' divides by the channels that turn, less two: here {width} do",
            "choose wider heads, or another scaling",
        )
    if kind == "longrope":
        _check_factors(family, given, width // 2)
    return Rotary.Spec(
        width=width,
        base=float(given.get("rope_theta", base)),
        scaling=read(given, context),
    )


def _check_factors(family: str, given: Mapping[str, Any], pairs: int) -> None:
    """Refuse a LongRoPE without one positive factor, short and long, for each pair of channels that turn.

    Raises:
        ModelFileError: names the list, its length and the pairs.
    """
    for key in ("short_factor", "long_factor"):
        factors = given.get(key)
        numbers = factors if isinstance(factors, list | tuple) else ()
        if len(numbers) != pairs or not all(type(x) in (int, float) and x > 0 for x in numbers):
            factors_given = f"{len(numbers)} numbers" if numbers else repr(factors)[:40]
            raise ModelFileError(
                f"{family}: {key} is {factors_given}, but {pairs} pairs of channels turn",
                "longrope has one factor a pair",
            )


def check_nested(family: str, settings: Mapping[str, Any]) -> None:
    """Refuse, in one of several sets of rotary settings, what the reference looks for outside of them.

    Raises:
        ModelFileError: the ramp of YaRN is not to be rounded, which the reference then does all the same.
    """
    if not settings.get("truncate", True):
        raise ModelFileError(
            f"{family}: {_WHERE}: truncate = {settings['truncate']!r} inside the settings of a kind of layer",
            "transformers does not read it there; leave it out",
        )


def _turning(family: str, given: Mapping[str, Any], head_width: int, share: float | None) -> int:
    """Return how many channels of a head turn.

    Raises:
        ModelFileError: a part of each head in a family that turns whole ones, or channels that do not pair.
    """
    part = given.get("partial_rotary_factor", share)
    if share is None and part not in (None, 1):
        raise ModelFileError(
            f"{family}: {_WHERE}: partial_rotary_factor = {part!r}, but this family turns whole heads",
            "transformers reads past this setting or fails; remove it if the model was trained so",
        )
    width = int(head_width * (1 if part is None else part))
    if width % 2 or not 0 < width <= head_width:
        raise ModelFileError(
            f"{family}: {width} channels of a head turn, of {head_width} (head_dim = {head_width}, that is "
            f"hidden_size by num_attention_heads where it is not given; partial_rotary_factor = {part!r})",
            "rotary positions turn channels two by two: choose an even number of them, and no more than there are",
        )
    return width


def check_turning(family: str, turning: int, head_width: int) -> int:
    """Return how many channels of a head turn where a setting, ``rotary_dim``, counts them.

    Raises:
        ModelFileError: channels that do not pair, or more than a head has.
    """
    if turning % 2 or turning > head_width:
        raise ModelFileError(
            f"{family}: rotary_dim = {turning} of head_dim = {head_width}",
            "channels turn two by two: choose an even number of them, and no more than there are",
        )
    return turning


def yarn_temperature(factor: float, weight: float = 1.0) -> float:
    """Return YaRN's factor on queries and keys, ``0.1 weight ln(factor) + 1`` (Peng et al. 2023, section 3.4)."""
    return 0.1 * weight * math.log(factor) + 1.0 if factor > 1 else 1.0


def _trained(given: Mapping[str, Any], context: int) -> int:
    """Return the length that a model was trained with before its context was stretched."""
    return int(given.get("original_max_position_embeddings") or context)


def _yarn(given: Mapping[str, Any], context: int) -> Scaling:
    trained, temperature = _trained(given, context), given.get("attention_factor")
    factor = context / trained if given["factor"] is None else float(given["factor"])
    rotated, everywhere = given.get("mscale"), given.get("mscale_all_dim")
    if temperature is None and rotated and everywhere:  # DeepSeek: the scores take the temperature of all channels
        temperature = yarn_temperature(factor, rotated) / yarn_temperature(factor, everywhere)
    return Yarn(
        factor=factor,
        trained=trained,
        fast=float(given.get("beta_fast") or 32),
        slow=float(given.get("beta_slow") or 1),
        temperature=None if temperature is None else float(temperature),
        truncate=bool(given.get("truncate", True)),
    )


def _llama3(given: Mapping[str, Any], context: int) -> Scaling:
    low, high = (float(given[f"{end}_freq_factor"]) for end in ("low", "high"))
    return Llama3(
        factor=float(given["factor"]), low_frequency=low, high_frequency=high, trained=_trained(given, context)
    )


def _longrope(given: Mapping[str, Any], context: int) -> Scaling:
    trained, temperature = _trained(given, context), given.get("attention_factor")
    factor = context / trained if given.get("factor") is None else float(given["factor"])
    if temperature is None:  # as much as the entropy of a pattern over more tokens grows (Ding et al. 2024)
        temperature = math.sqrt(1 + math.log(factor) / math.log(trained)) if factor > 1 else 1.0
    short, long = (tuple(map(float, given[f"{length}_factor"])) for length in ("short", "long"))
    return LongRope(short=short, long=long, trained=trained, temperature=float(temperature))


_Reader = Callable[[Mapping[str, Any], int], Scaling]
_READERS: dict[str, tuple[set[str], _Reader]] = {
    "default": (set(), lambda given, context: Unscaled()),
    "linear": ({"factor"}, lambda given, context: Linear(factor=float(given["factor"]))),
    # Whatever original length is given: the reference stretches the context itself.
    "dynamic": ({"factor"}, lambda given, context: Dynamic(factor=float(given["factor"]), trained=context)),
    "yarn": ({"factor", "beta_fast", "beta_slow", "attention_factor", "truncate", "mscale", "mscale_all_dim"}, _yarn),
    "llama3": ({"factor", "low_freq_factor", "high_freq_factor"}, _llama3),
    "longrope": ({"factor", "short_factor", "long_factor", "attention_factor"}, _longrope),
}
