"""The end of a run: when it comes, why, and which model it leaves."""

import math
import os
from collections.abc import Callable, Mapping
from pathlib import Path

from torch import nn

from orrery.checkpoints import disk
from orrery.checkpoints.store import CheckpointStore, read_checkpoint
from orrery.recipes.config import Recipe
from orrery.training.evaluate import Validation
from orrery.training.memory import weight_bytes
from orrery.training.state import Progress, currently_named, load_model_tensors


def stopped_improving(progress: Progress, recipe: Recipe) -> bool:
    """Say whether ``evaluation.patience`` evaluations in a row were no better than the best before them."""
    patience = recipe.evaluation.patience
    return patience is not None and progress.waited >= patience


def is_over(progress: Progress, recipe: Recipe) -> bool:
    """Say whether a run has nothing left to learn: all steps are done, or its patience is over."""
    return progress.step >= recipe.training.steps or stopped_improving(progress, recipe)


def improved(progress: Progress, measures: Mapping[str, float], validation: Validation) -> bool:
    """Say whether a model is the best so far, by the metric that decides and its direction, and note it.

    Of equal values the one with the smaller loss is better, as far as a loss is measured: scores of few examples are
    often equal. Patience waits for a better value alone.

    Args:
        progress: of the run.
        measures: what was measured; nothing where nothing was.
        validation: what decides.
    """
    if not measures:
        return False
    name = validation.decides
    if progress.decides != name:  # another metric decides since the run was resumed
        progress.best, progress.decides, progress.waited = None, name, 0
    value, loss = measures[f"val/{name}"], measures.get("val/loss", math.inf)
    better = math.isfinite(value) and validation.measured[name].better(value, progress.best)
    before = math.inf if progress.best_loss is None else progress.best_loss
    progress.waited = 0 if better else progress.waited + 1
    if not better and (value != progress.best or not loss < before):
        return False
    progress.best, progress.best_loss = value, loss if math.isfinite(loss) else None
    return True


def told(progress: Progress, recipe: Recipe, best: int | None) -> list[str]:
    """Say why a run ended before its last step; nothing where it did not. ``best`` is the step of its best model."""
    if progress.step >= recipe.training.steps or not stopped_improving(progress, recipe):
        return []
    reached = "none was a number" if best is None else f"the best, {progress.best:.4f}, is that of step {best:,}"
    return [
        f"ended early, after step {progress.step:,} of {recipe.training.steps:,}: {progress.waited} evaluations "
        f"without a better {progress.decides}; {reached}"
    ]


def take_best(model: nn.Module, owned: nn.Module, store: CheckpointStore) -> str:
    """Give a model, and what its objective owns, the weights of the best checkpoint, and say so.

    Those it has stay where nothing chose a best one.
    """
    step = store.best()
    if step is None:
        return "final: the last model, for no evaluation gave a number to choose the best by"
    saved = read_checkpoint(store.path(step))
    load_model_tensors(model, currently_named(model, saved.model))
    load_model_tensors(owned, saved.objective)
    return f"final: the best model, that of step {step:,}"


def write_final(finish: Callable[[nn.Module, Path], None], model: nn.Module, final: Path) -> None:
    """Write the final model into its folder, complete or not at all."""
    fresh = final.with_name(f"{final.name}.tmp-{os.getpid()}")
    with disk.machine_errors(fresh, weight_bytes(model)):
        disk.remove_tree(fresh)
        fresh.mkdir()
        finish(model.eval(), fresh)
        disk.remove_tree(final)
        disk.replace(fresh, final)
