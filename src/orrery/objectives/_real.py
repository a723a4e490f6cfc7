"""Which tokens of a batch are text and not padding, for objectives that corrupt text."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

    from orrery.models.inputs import Batch


def real_tokens(batch: "Batch") -> "Tensor":
    """Return which tokens are real.

    A batch says so with ``real``, packed rows with ``documents`` (-1 is padding). Windows over a text have neither:
    what stands behind the last target of a row is padding.

    Shapes: ``[B, L]`` of bool.
    """
    import torch

    from orrery.nn.cross_entropy import IGNORED

    if "real" in batch:
        return batch["real"]
    if "documents" in batch:
        return batch["documents"] >= 0
    if "targets" not in batch:
        return torch.ones_like(batch["ids"], dtype=torch.bool)
    known_BL = (batch["targets"] != IGNORED).long()
    real: Tensor = known_BL.flip(1).cumsum(1).flip(1) > 0
    return real


def with_real(batch: "Batch", real_BL: "Tensor") -> dict[str, "Tensor"]:
    """Return the batch with which tokens are real, where any is padding: whole rows are read faster without."""
    return dict(batch) if bool(real_BL.all()) else {**batch, "real": real_BL}
