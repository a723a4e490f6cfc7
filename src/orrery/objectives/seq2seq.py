"""Sequence to sequence: each target token is predicted from the source and the true tokens before it."""

import torch
from torch import nn

from orrery.objectives.causal import IGNORED, TERM, head_cross_entropy
from orrery.objectives.protocols import Batch, Term


class TeacherForced:
    """``-log p(y_t | x, y_<t)`` in nats, with the true ``y_<t`` whatever the model would have written.

    Williams and Zipser 1989 call it teacher forcing; label smoothing is that of ``CausalLanguageModel``. A batch has
    ``source``, ``source_real``, ``ids`` (the start token, then the target) and ``targets`` (the target, then the end
    token), -100 where there is none. The model offers ``hidden(source, ids, source_real=...)`` and ``head``.
    """

    def __init__(self, label_smoothing: float = 0.0) -> None:
        self.label_smoothing = label_smoothing

    def prepare(self, batch: Batch, rng: torch.Generator) -> Batch:
        """Return the batch as it is: nothing is drawn."""
        return batch

    def counts(self, batch: Batch) -> dict[str, int]:
        """Count the targets that are not ignored."""
        return {TERM: int((batch["targets"] != IGNORED).sum())}

    def loss(self, model: nn.Module, batch: Batch) -> dict[str, Term]:
        """Return the summed cross entropy of the batch and its number of targets."""
        targets_BL = batch["targets"]
        # Padding on the right comes after every target, so the decoder needs no mask against it.
        x_BLD = model.hidden(batch["source"], batch["ids"], source_real=batch["source_real"])  # type: ignore[operator]
        total = head_cross_entropy(model, x_BLD.flatten(0, 1), targets_BL.flatten(), self.label_smoothing)
        return {TERM: Term(total, (targets_BL != IGNORED).sum())}
