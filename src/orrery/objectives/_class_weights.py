"""How much each label counts in a loss, by how often it occurs."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import torch
    from torch import Tensor

Kind = Literal["balanced", "sqrt"]
POWERS: Mapping[Kind, float] = {"balanced": 1.0, "sqrt": 0.5}


class ClassWeights:
    """``w_c`` in proportion to ``n_c^-p``, scaled so that their mean over the training labels is 1.

    ``balanced`` has p = 1, which is ``N / (C n_c)``: each of the C labels counts alike (King and Zeng 2001); ``sqrt``
    has p = 1/2, for labels of which one is far more frequent than the others.
    Without a kind nothing is weighed.
    """

    def __init__(self, kind: Kind | None) -> None:
        self.kind = kind
        self.counts: Mapping[str, int] = {}
        self.weights: tuple[float, ...] | None = None

    def bind(self, names: Sequence[str]) -> None:
        """Take the weights of the labels in the order of the head."""
        assert self.kind is not None
        self.weights = class_weights(self.kind, [self.counts.get(name, 0) for name in names])

    def on(self, device: "torch.device") -> "Tensor | None":
        """Return the weights, in float64."""
        import torch

        return None if self.weights is None else torch.tensor(self.weights, dtype=torch.float64, device=device)


def class_weights(kind: Kind, counts: Sequence[int]) -> tuple[float, ...]:
    """Return a weight for each count; a label that never occurs has none."""
    raw = [count ** -POWERS[kind] if count else 0.0 for count in counts]
    scale = sum(counts) / sum(count * weight for count, weight in zip(counts, raw, strict=True))
    return tuple(scale * weight for weight in raw)
