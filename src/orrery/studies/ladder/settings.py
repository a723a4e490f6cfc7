"""What a scaling ladder is: the section ``ladder`` of its recipe; all else there is the recipe of every size."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, field_validator, model_validator
from pydantic_core import PydanticCustomError

from orrery.errors import UsageError
from orrery.recipes.config import Recipe
from orrery.recipes.read import LADDER, check_as, check_recipe, overridden, plain, read_yaml
from orrery.schema.numbers import Fraction, NoTruth, Seed, Share, Tokens
from orrery.schema.section import Section

LEAST = 4
"""Trainings of the smaller sizes, of which the law has three numbers; and sizes, so that three of them are fitted."""
CAUSAL = "causal"
PerParameter = Annotated[float, Field(gt=0, le=1e6), NoTruth]


class LadderSettings(Section):
    """The sizes, from the smallest to the largest, and the rules by which each is trained.

    ``sizes`` are keys of ``model.config`` with their values. Every size sees ``tokens_per_parameter`` tokens for each
    parameter of its blocks. The learning rate is the recipe's at the smallest size and falls with the parameters N as
    ``N^-rate_exponent``; it rises over the part ``warmup`` of the steps. All but the largest size are trained with each
    of ``seeds``, the largest with the first. The loss is that of whole documents, of about ``held_back`` tokens.
    """

    sizes: tuple[dict[str, Any], ...]
    tokens_per_parameter: PerParameter = 20.0
    rate_exponent: Share = 0.25
    warmup: Fraction = 0.1
    seeds: tuple[Seed, ...] = Field(default=(1337, 1338, 1339), min_length=1)
    held_back: Tokens = 262_144

    @field_validator("sizes")
    @classmethod
    def _enough(cls, sizes: tuple[dict[str, Any], ...]) -> tuple[dict[str, Any], ...]:
        if len(sizes) < LEAST:
            parts = {"given": len(sizes), "least": LEAST}
            message = (
                "a ladder has {least} sizes or more, three that the law is of and one that it predicts; not {given}"
            )
            raise PydanticCustomError("sizes", message, parts)
        return sizes

    @model_validator(mode="after")
    def _can_be_fitted(self) -> "LadderSettings":
        if len(set(self.seeds)) < len(self.seeds):
            raise PydanticCustomError("seeds", "a seed is named twice")
        if (runs := (len(self.sizes) - 1) * len(self.seeds)) < LEAST:
            parts = {"runs": runs, "least": LEAST}
            message = (
                "{runs} trainings below the largest size, and a law is fitted to {least}: more sizes, or more seeds"
            )
            raise PydanticCustomError("seeds", message, parts)
        return self


@dataclass(frozen=True)
class Ladder:
    """A recipe and the sizes that it is trained in."""

    base: Recipe
    settings: LadderSettings

    def as_json(self) -> dict[str, Any]:
        """Return what a ladder that is continued must find again."""
        return {LADDER: plain(self.settings), **plain(self.base)}


def load_ladder(path: Path, overrides: Sequence[str] = (), environment: Mapping[str, str] | None = None) -> Ladder:
    """Read a ladder, with new values for some of its keys.

    Args:
        path: a YAML file.
        overrides: words of a command line, such as ``--ladder.tokens_per_parameter 10``.
        environment: where ``ORRERY_LADDER__WARMUP=0.2`` stands in for a word.

    Raises:
        UsageError: the file has no section ``ladder``, or a key is wrong; it is named.
    """
    values = overridden(read_yaml(path), overrides, environment, beside=(LADDER,))
    if not isinstance(section := values.pop(LADDER, None), Mapping):
        hint = f"give sizes below it, as recipes/scaling-ladder.yaml does; `orrery train {path}` trains one model"
        raise UsageError(f"{path} has no section {LADDER!r}, which names the sizes", hint)
    settings = check_as(LadderSettings, section, f"{path}: {LADDER}")
    base = check_recipe(values, str(path))
    refuse_unfit(base, path)
    return Ladder(base, settings)


def refuse_unfit(base: Recipe, path: Path) -> None:
    """Refuse a recipe that is none of several sizes of a language model.

    Raises:
        UsageError: what it has that does not fit is named.
    """
    if base.model.family is None:
        raise UsageError(f"{path}: a ladder makes models of a family", "give model.family, such as llama")
    if (kind := plain(base.objective)["kind"]) != CAUSAL:
        message = f"{path}: objective.kind is {kind}, and the law is of the loss of the next token"
        raise UsageError(message, f"give objective.kind {CAUSAL}, and a decoder's family")
    if base.training.final == "best" or base.evaluation.patience is not None:
        key = "training.final best" if base.training.final == "best" else "evaluation.patience"
        raise UsageError(f"{path}: {key} chooses on the text that the law is of", "leave it out")
    if base.expect is not None:
        message = f"{path}: expect is of one training, and a ladder has several"
        raise UsageError(message, "leave it out, or make it null")
