"""What the metrics of one head share: that the model has it, that the batches have the field, what it says."""

from typing import TYPE_CHECKING, Any

from orrery.errors import DataError, UsageError

if TYPE_CHECKING:
    from torch import Tensor, nn

    from orrery.models.inputs import Batch
    from orrery.models.model import ModelSpec


def check_head(metric: str, spec: "ModelSpec", head: str) -> None:
    """Raise `UsageError` where the model has no head of this name."""
    if head not in spec.head_names:
        known = ", ".join(spec.head_names) or "none"
        raise UsageError(f"{metric}: the model has no head {head}", f"it has: {known}")


def labels_of(metric: str, spec: "ModelSpec", head: str) -> int:
    """Return how many labels a head has. Raises `UsageError` where it is not there or has none."""
    check_head(metric, spec, head)
    labels: int | None = getattr(spec.heads.get(head), "labels", None)
    if labels is None:
        raise UsageError(f"{metric}: the head {head} has no labels", "name a head of kind sequence or token")
    return labels


def field_of(metric: str, batch: "Batch", field: str) -> "Tensor":
    """Return a field of a batch. Raises `UsageError` where it has none of this name."""
    if field not in batch:
        raise UsageError(f"{metric}: the batches have no {field}", f"they have: {', '.join(batch)}")
    return batch[field]


def said_by(model: Any, batch: "Batch", head: str) -> "Tensor":
    """Return what a head says of a batch; of padded tokens it says minus infinity."""

    def logits(part: "nn.Module", x_BLD: "Tensor", real_BL: "Tensor | None") -> "Tensor":
        logits_given: Tensor = part(x_BLD, real_BL)
        return (
            logits_given
            if logits_given.ndim < 3 or real_BL is None
            else logits_given.masked_fill(~real_BL[..., None], float("-inf"))
        )

    answer: Tensor = model(batch, {head: logits})[head]
    return answer


def check_labels(metric: str, labels: "Tensor", count: int) -> None:
    """Raise `DataError` where a label that is asked for is none of the head's."""
    if labels.numel() and not 0 <= int(labels.min()) <= int(labels.max()) < count:
        what = f"{metric}: labels from {int(labels.min())} to {int(labels.max())}, the head has {count}"
        raise DataError(what, "labels count from 0; give the head as many labels as the data have")
