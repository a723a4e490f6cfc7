"""The sizes of a ladder worked out: parameters, tokens, steps, operations and rate of each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import torch

from orrery.errors import ModelFileError, UsageError
from orrery.models.model import ModelSpec
from orrery.planning.matrices import matrices_of
from orrery.planning.step_cost import step_cost
from orrery.recipes.config import Recipe
from orrery.runs.building import read_spec
from orrery.studies.compare.learning import scheduled
from orrery.studies.ladder.settings import Ladder
from orrery.studies.training import changed


@dataclass(frozen=True)
class LadderSize:
    """One size of a ladder.

    Attributes:
        recipe: of its trainings, but for the seed.
        parameters: N, of the blocks: embedding, head and last norm are left out (Kaplan et al. 2020, section 2.1).
        operations: C, of one training, counted: those of head and attention too.
    """

    recipe: Recipe
    parameters: int
    operations: float

    @property
    def steps(self) -> int:
        """The steps of one training."""
        return self.recipe.training.steps

    @property
    def tokens(self) -> int:
        """D: the tokens of one training."""
        return self.steps * self.recipe.batches.positions

    @property
    def rate(self) -> float:
        """The greatest learning rate."""
        return self.recipe.training.optimizer.rate

    @property
    def name(self) -> str:
        """The parameters, as the name of a folder."""
        return f"{self.parameters}-parameters"

    def as_json(self) -> dict[str, Any]:
        """Return the numbers of the size."""
        return {
            "config": dict(self.recipe.model.config),
            "parameters": self.parameters,
            "tokens": self.tokens,
            "steps": self.steps,
            "operations": self.operations,
            "rate": self.rate,
        }


def sizes_of(ladder: Ladder, vocabulary: int, tokenizer: Path) -> tuple[LadderSize, ...]:
    """Return the sizes of a ladder, the smallest first.

    Args:
        ladder: the ladder.
        vocabulary: ids of the tokenizer.
        tokenizer: its folder.

    Raises:
        UsageError: a size that is not larger than the one before it, or whose training is not.
        ModelFileError: a size that is no model of the family.
    """
    specs = [_spec(ladder, number, size, vocabulary) for number, size in enumerate(ladder.settings.sizes, start=1)]
    counts = [blocks_parameters(spec) for spec in specs]
    refuse_no_growth(counts, "parameters in its blocks", ",d")
    sizes = tuple(
        _size(ladder, config, spec, parameters, counts[0], tokenizer)
        for config, spec, parameters in zip(ladder.settings.sizes, specs, counts, strict=True)
    )
    refuse_no_growth([size.operations for size in sizes], "operations in its training", ".4g")
    return sizes


def refuse_no_growth(numbers: Sequence[int | float], what: str, form: str) -> None:
    """Refuse sizes of which one has no more of something than the one before it.

    Args:
        numbers: what each has.
        what: of which these are the numbers.
        form: the form of a number.

    Raises:
        UsageError: so it is; both numbers are named.
    """
    for number, (before, after) in enumerate(pairwise(numbers), start=2):
        if after <= before:
            message = f"ladder.sizes: number {number} has {after:{form}} {what}, the one before {before:{form}}"
            raise UsageError(message, "name the sizes from the smallest to the largest")


def blocks_parameters(spec: ModelSpec) -> int:
    """Count the parameters of the blocks, as scaling laws do: no tables of tokens or positions, no head."""
    return sum(one.numel * one.copies for one in matrices_of(spec) if one.layer is not None and not one.tied)


def _spec(ladder: Ladder, number: int, size: Mapping[str, Any], vocabulary: int) -> ModelSpec:
    settings = ladder.base.model
    try:
        return cast(ModelSpec, read_spec(settings, {"vocab_size": vocabulary, **settings.config, **size}))
    except ModelFileError as error:
        message = f"ladder.sizes: number {number}: {error.message}"
        raise ModelFileError(message, "change that key there, or in the model.config that all sizes share") from error


def _size(
    ladder: Ladder, config: Mapping[str, Any], spec: ModelSpec, parameters: int, smallest: int, tokenizer: Path
) -> LadderSize:
    settings, base = ladder.settings, ladder.base
    batch = base.batches
    steps = max(1, round(settings.tokens_per_parameter * parameters / batch.positions))
    rate = base.training.optimizer.rate * (parameters / smallest) ** -settings.rate_exponent
    sized = changed(base, model__config={**base.model.config, **config}, tokenizer={"file": str(tokenizer)})
    cost = step_cost(spec, batch.most_rows, batch.positions // batch.most_rows, torch.float32).training.total
    return LadderSize(scheduled(sized, steps, rate, settings.warmup), parameters, float(cost) * steps)
