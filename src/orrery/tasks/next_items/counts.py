"""What followed what, counted, beside a model over items: in a file of the model's folder."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from orrery.checkpoints.disk import machine_errors, replace
from orrery.checkpoints.tensors import read_tensors, write_tensors
from orrery.errors import ModelFileError
from orrery.exchange.reading.read import recipe_of
from orrery.exchange.saving.beside import COUNTS as FILE
from orrery.tasks.next_items.baselines import GAPS, Floats, Ids, MarkovGaps, Popularity

if TYPE_CHECKING:
    from orrery.language_model.model import LanguageModel

PARTS = ("starts", "items", "counts")
FLOOR = 1e-4
"""Of what was never seen to follow, so that the model alone orders it."""


@dataclass(frozen=True)
class Counts:
    """``z' = (1 - s) z + s log(c + 1e-4)``: model and counts as a product of experts (Hinton 2002).

    c are the scores of Markov over gaps with the sum 1: few examples say with certainty what followed what, and a model
    would have to learn it from them.

    Attributes:
        markov: what followed what.
        share: that of the counts, from 0 to 1.
    """

    markov: MarkovGaps
    share: float

    def beside(self, logits: Floats, histories: Sequence[Ids]) -> Floats:
        """Return the logits of both, [histories, V]; items beyond those that are counted follow nothing."""
        found = np.zeros_like(logits)
        for row, history in zip(found, histories, strict=True):
            scores = self.markov.scores(history)
            row[: len(scores)] = scores / max(scores.sum(), np.finfo(np.float64).tiny)
        mixed: Floats = (1 - self.share) * logits + self.share * np.log(found + FLOOR)
        return mixed

    def save(self, folder: Path) -> None:
        """Write them into the folder of their model.

        Raises:
            MachineError: there is no room.
        """
        arrays = {"popularity": self.markov.popularity.counts, "numbers": np.array([self.share, self.markov.decay])}
        for gap, table in enumerate(self.markov.tables, start=1):
            arrays |= {f"{part}_{gap}": each for part, each in zip(PARTS, table, strict=True)}
        with machine_errors(folder):
            write_tensors(folder / f"{FILE}.part", {name: torch.from_numpy(each) for name, each in arrays.items()})
            replace(folder / f"{FILE}.part", folder / FILE)


def load(folder: Path) -> Counts:
    """Read the counts in the folder of a model.

    Raises:
        ModelFileError: the file is damaged.
    """
    found = {name: tensor.numpy() for name, tensor in read_tensors(folder / FILE).items()}
    try:
        share, decay = found["numbers"].tolist()
        tables = [(found[f"starts_{gap}"], found[f"items_{gap}"], found[f"counts_{gap}"]) for gap in range(1, GAPS + 1)]
        popularity = found["popularity"]
        whole = all(each.ndim == 1 and each.dtype == np.int64 for each in (popularity, *sum(tables, ())))
        known = whole and (popularity >= 0).all()
        if not (known and 0 <= share <= 1 and 0 <= decay <= 1 and all(_sound(t, len(popularity)) for t in tables)):
            raise ValueError("its parts do not fit each other")
        return Counts(MarkovGaps(tables, Popularity(popularity), decay), share)
    except (KeyError, ValueError, TypeError) as error:
        message = f"{folder / FILE} holds no sound counts: {type(error).__name__} {error}"
        raise ModelFileError(message, "train it again: orrery finetune") from None


def _sound(table: tuple[np.ndarray, ...], size: int) -> bool:
    starts, items, counts = table
    ordered = len(starts) == size + 1 and starts[0] == 0 and starts[-1] == len(items) and (np.diff(starts) >= 0).all()
    return bool(ordered and len(items) == len(counts) and ((items >= 0) & (items < size) & (counts > 0)).all())


def counts_of(lm: "LanguageModel") -> Counts | None:
    """Return the counts beside a model; nothing where its recipe asks for none.

    Raises:
        ModelFileError: the recipe of its run has a share for counts (``data.counts``), and its folder has none; or they
            are of another model.
    """
    folder = lm.stored.folder
    if (folder / FILE).is_file():
        found = load(folder)
        if (size := len(found.markov.popularity.counts)) != lm.model.spec.vocabulary:
            message = f"{folder / FILE} counts {size:,} items, and the model has {lm.model.spec.vocabulary:,} tokens"
            raise ModelFileError(message, "it belongs to another model; train this one again: orrery finetune")
        return found
    for run in (folder, *folder.parents[:2]):
        data = recipe_of(run).get("data")
        if isinstance(data, dict) and data.get("kind") == "interactions" and data.get("counts"):
            hint = "name the run, whose final model has them, or resume it; checkpoints and averages have none"
            raise ModelFileError(f"{folder} has no {FILE}, which its run asks for (data.counts)", hint)
    return None
