"""What the objectives with one right label at each place share: label smoothing, and how much each label counts."""

from abc import ABC
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from orrery.objectives._on_head import OnHead, OnHeadSettings
from orrery.schema.numbers import Fraction

if TYPE_CHECKING:
    from torch import Tensor

    from orrery.models.model import ModelSpec
    from orrery.text.tokenizer import Tokenizer

ClassWeights = Literal["balanced", "sqrt"]
POWERS: Mapping[ClassWeights, float] = {"balanced": 1.0, "sqrt": 0.5}


class OnLabelsSettings(OnHeadSettings, ABC):
    """``class_weights``, ``balanced`` or ``sqrt``, lets rare labels count as much as frequent ones, or nearly so."""

    label_smoothing: Fraction = 0.0
    class_weights: ClassWeights | None = None


class OnLabels(OnHead, ABC):
    """An objective whose loss is ``-w_y log p(y | x)``; the weights ``w`` are 1 or those of ``class_weights``."""

    def __init__(
        self,
        head: str | None = None,
        label_smoothing: float = 0.0,
        class_weights: ClassWeights | None = None,
        word_dropout: float = 0.0,
    ) -> None:
        super().__init__(head, word_dropout)
        self.label_smoothing, self.class_weights = label_smoothing, class_weights
        self.label_counts: Mapping[str, int] = {}
        self.weights: tuple[float, ...] | None = None

    def bind(self, spec: "ModelSpec", tokenizer: "Tokenizer | None") -> None:
        """Take the weights of the labels in the order of the head.

        Raises:
            UsageError: the model lacks the head.
        """
        super().bind(spec, tokenizer)
        if self.class_weights is not None:
            own: Any = spec
            counts = [self.label_counts.get(name, 0) for name in own.heads[self.head].names]
            self.weights = class_weights(self.class_weights, counts)

    def summed(self, logits_NC: "Tensor", targets_N: "Tensor") -> "Tensor":
        """Return the summed loss of rows of logits; a target of -100 is not counted.

        Behind the labels may follow other axes, which the targets have too: ``[N, C, rows, columns]``.
        """
        import torch

        from orrery.nn.cross_entropy import summed_cross_entropy

        weights_C = None
        if self.weights is not None:
            weights_C = torch.tensor(self.weights, dtype=torch.float64, device=logits_NC.device)
        return summed_cross_entropy(logits_NC, targets_N, self.label_smoothing, weights_C)

    def evaluated(self) -> "OnLabels":
        """Return the objective without label smoothing, weights and word dropout."""
        return type(self)(self.head)


def class_weights(kind: ClassWeights, counts: Sequence[int]) -> tuple[float, ...]:
    """Return ``w_c`` in proportion to ``n_c^-p``, scaled so that their mean over the training labels is 1.

    ``balanced`` has p = 1, which is ``N / (C n_c)``: each of the C labels counts alike (King and Zeng 2001). ``sqrt``
    has p = 1/2, for labels of which one is far more frequent than the others. A label that never occurs has none.
    """
    raw = [count ** -POWERS[kind] if count else 0.0 for count in counts]
    among = sum(count * weight for count, weight in zip(counts, raw, strict=True))
    return tuple(sum(counts) / among * weight if among else 0.0 for weight in raw)
