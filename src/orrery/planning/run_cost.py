"""What the run of a recipe costs: operations, memory, and whether that is there, said before the first step."""

from dataclasses import dataclass

from orrery.planning.batch_cost import cost_of_rows, largest_batch
from orrery.planning.whole_step import with_gaps
from orrery.recipes.config import Recipe
from orrery.training.loop import Parts
from orrery.training.memory import STATES, free_bytes, learnt_bytes, weight_bytes
from orrery.training.precision import Precision
from orrery.training.step import rows_of


@dataclass(frozen=True)
class RunCost:
    """What a run costs.

    Attributes:
        step: floating-point operations of a step on the largest of the first batches.
        all: of the whole run, were all batches like it.
        at_once: rows that are computed at once.
        fixed: bytes of weights, gradients and optimizer.
        lasting: those of them that are not in memory yet.
        kept: bytes of the activations of the rows that are computed at once.
        free: bytes that can still be taken, where the system says.
    """

    step: float
    all: float
    at_once: int
    fixed: int
    lasting: int
    kept: int
    free: int | None

    @property
    def needed(self) -> float:
        """Bytes that the run takes beside what this process holds, the gaps between its tensors among them."""
        return self.lasting + with_gaps(self.kept)

    @property
    def fitting_rows(self) -> int:
        """Rows that can be computed at once; 0 where not even one can."""
        if self.free is None or self.needed <= self.free:
            return self.at_once
        return max(0, int((self.free - self.lasting) / (with_gaps(self.kept) / self.at_once)))

    def free_lines(self) -> list[tuple[str, str]]:
        """Return the plan's lines on free memory: what is taken of it, and what would fit where that is too much."""
        if self.free is None:
            return []
        taken = ("free memory", f"{self.free / 1e9:,.1f} GB, of which the run takes about {self.needed / 1e9:,.1f}")
        if self.needed <= self.free:
            return [taken]
        fits = f"training.micro_batch {self.fitting_rows} fits, with the same result"
        smaller = "a smaller model, an adapter (model.adapter) or shorter batches would fit"
        return [taken, ("too large", fits if self.fitting_rows else smaller)]


def run_cost(recipe: Recipe, parts: Parts, precision: Precision) -> RunCost:
    """Return the cost of a run: some rows of a batch go through the model, nothing is trained."""
    settings, batches = recipe.training, recipe.batches
    batch = largest_batch(parts)
    at_once = min(batches.most_rows, settings.micro_batch or batches.most_rows)
    cost_of_batch = cost_of_rows(parts, precision, batch, rows_of(batch))
    kept = cost_of_batch if at_once >= rows_of(batch) else cost_of_rows(parts, precision, batch, at_once)
    model = parts.model
    learning = (1 + STATES[settings.optimizer.kind]) * learnt_bytes(model)
    return RunCost(
        step=cost_of_batch.operations,
        all=cost_of_batch.operations * settings.steps,
        at_once=at_once,
        fixed=weight_bytes(model) + learning,
        lasting=learning,
        kept=round(kept.kept),
        free=free_bytes(precision.device),
    )
