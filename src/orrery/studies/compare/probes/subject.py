"""What a probe is told of a model, and the models of its kind that a probe needs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from orrery.studies.compare.models import KINDS, ModelKind, fitted
from orrery.studies.compare.plan import ComparisonPlan
from orrery.studies.compare.texts import Ids
from orrery.studies.fitting import build

SMALL, NEAR, LAYERS = 60_000, 0.1, 2
"""The parameters of what a probe trains, how far off they may be, and its layers."""

Curve = dict[str, float]
"""What a probe measured of one model: a number at each place, which is a number too, written out for JSON."""


@dataclass(frozen=True)
class ProbeSubject:
    """A compared model: its name, the comparison's plan, and the run of the greatest budget and first seed.

    ``vocabulary`` are the ids of the tokenizer, ``held_back`` the text of the table.
    """

    name: str
    plan: ComparisonPlan
    run: Path
    vocabulary: int
    held_back: Sequence[Ids]

    @property
    def seeds(self) -> Sequence[int]:
        """The seeds that what is trained is trained with."""
        return self.plan.seeds

    @property
    def steps(self) -> int:
        """The steps that what is trained learns for."""
        return self.plan.probing.steps

    def small(self, vocabulary: int, length: int, seed: int) -> Any:
        """Return a new model of the same kind with two layers and about `SMALL` parameters."""
        kind = KINDS[self.name]
        shallow = replace(kind, fixed={key: LAYERS if "layers" in key else value for key, value in kind.fixed.items()})
        return self._built(shallow, {"vocab_size": vocabulary}, length, SMALL, NEAR, seed)

    def whole(self, length: int) -> Any:
        """Return a new model of the same size, whose context is ``length``."""
        return self._built(KINDS[self.name], {"vocab_size": self.vocabulary}, length, self.plan.parameters, NEAR, 0)

    def _built(
        self, kind: ModelKind, vocabulary: Mapping[str, int], length: int, parameters: int, tolerance: float, seed: int
    ) -> Any:
        shared = {**vocabulary, "max_position_embeddings": length}
        return build(kind.family, seed, {**shared, **fitted(kind, shared, parameters, tolerance)})
