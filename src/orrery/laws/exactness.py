"""How far every family was from its reference in float64, as recorded: casts widened, and as it is installed.

Many families of transformers compute norms, softmax and rotary tables in float32, whatever dtype their model has. The
golden outputs come from a reference whose casts are widened to float64; beside the installed one its own rounding
remains. ``benchmarks/exactness.py`` measures both and writes the file that is read here.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any

FILE = "exactness.json"
REMEDY = 'experts_implementation="eager"'
"""What the installed reference must be told where its experts know no float64."""


@dataclass(frozen=True)
class Apart:
    """The largest differences, ``max|a - b| / max(1, max|b|)``.

    Attributes:
        logits: of the logits, or of what the main head answers.
        gradients: of the gradient of any parameter.
    """

    logits: float
    gradients: float


@dataclass(frozen=True)
class Exactness:
    """What was found of one family.

    Attributes:
        by: who computed the reference.
        configurations: how many were tried.
        widened: beside the reference in float64 throughout.
        installed: beside the reference as it is installed; nothing where it raises, or where it has no such casts.
        eager: the same with its eager kernels of attention and of experts.
        raises: the error of the installed reference, if it has one.
        at: the function that raises it.
    """

    by: str
    configurations: int
    widened: Apart
    installed: Apart | None = None
    eager: Apart | None = None
    raises: str = ""
    at: str = ""

    @property
    def cast(self) -> Apart | None:
        """Beside the installed reference: with its eager kernels where it raises with those that it has by default."""
        return self.installed or self.eager


@lru_cache(maxsize=1)
def record() -> Mapping[str, Any]:
    """Return the file: ``header`` with machine, versions and commit, and what was ``found``."""
    content: dict[str, Any] = json.loads((files("orrery.laws") / FILE).read_text(encoding="utf-8"))
    return content


@lru_cache(maxsize=1)
def recorded() -> Mapping[str, Exactness]:
    """Return what was found, by family."""
    return {family: _read(one) for family, one in record()["found"]["families"].items()}


def _read(one: Mapping[str, Any]) -> Exactness:
    ways = {way: one.get(way, {}) for way in ("widened", "installed", "eager")}
    known: dict[str, Any] = {way: Apart(**apart) for way, apart in ways.items() if "logits" in apart}
    refused = {name: ways["installed"].get(name, "") for name in ("raises", "at")}
    return Exactness(one["by"], one["configurations"], **known, **refused)


def sentence(family: str) -> str:
    """Return what was found of a family's logits, in a sentence; nothing where it has no record."""
    recorded_family = recorded().get(family)
    if recorded_family is None:
        return ""
    exact = f"{family} beside {recorded_family.by} in float64: within {recorded_family.widened.logits:.1e}"
    if recorded_family.cast is None:
        return f"{exact}, which cast nothing to float32"
    how = f"as installed it raises in {recorded_family.at}, with {REMEDY}" if recorded_family.raises else "as installed"
    return f"{exact} with its inner casts to float32 widened; {how} {recorded_family.cast.logits:.1e}"


def summary() -> str:
    """Return what was found of all families' logits, in a sentence."""
    with_casts = {name: one for name, one in recorded().items() if one.cast is not None}
    (by,) = {one.by for one in with_casts.values()}
    exact = max(with_casts, key=lambda name: with_casts[name].widened.logits)
    cast = max(with_casts, key=lambda name: _logits(with_casts[name].cast))
    refused = [name for name, one in with_casts.items() if one.raises]
    said = f"{len(with_casts)} families beside {by} in float64: within {with_casts[exact].widened.logits:.1e} ({exact})"
    said += f" with its inner casts to float32 widened; as installed {_logits(with_casts[cast].cast):.1e} ({cast})"
    return f"{said}; {len(refused)} mixtures raise there without {REMEDY}" if refused else said


def _logits(apart: Apart | None) -> float:
    return 0.0 if apart is None else apart.logits
