"""F1 of whole entities, from the tags of a token head."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from orrery.errors import DataError, UsageError
from orrery.metrics import Metric, MetricSettings, register
from orrery.metrics._heads import check_labels, field_of, labels_of, said_by

if TYPE_CHECKING:
    from torch import Tensor

    from orrery.data.sources import HeldBack
    from orrery.models.inputs import Batch
    from orrery.models.model import ModelSpec
    from orrery.objectives import Term
    from orrery.text.tokenizer import Tokenizer


@register
class EntityF1(Metric):
    """F1 of entities, each row of a batch a sentence; tokens with the target -100 are no words and are left out.

    The names of the head's labels are the tags. What a sentence lost by being cut is not counted (see
    `orrery.scores.entities`).
    """

    class Settings(MetricSettings):
        """``average`` over types, ``scheme`` of tags; ``head`` gives the logits, ``field`` of a batch the tags."""

        kind: Literal["entity_f1"] = "entity_f1"
        average: Literal["macro", "micro", "weighted"] = "micro"
        scheme: Literal["conlleval", "IOB2", "IOE2", "IOBES"] = "conlleval"
        head: str = "token"
        field: str = "targets"

    higher_is_better = True

    def __init__(
        self,
        average: Literal["macro", "micro", "weighted"] = "micro",
        scheme: Literal["conlleval", "IOB2", "IOE2", "IOBES"] = "conlleval",
        head: str = "token",
        field: str = "targets",
    ) -> None:
        self.average, self.scheme, self.head, self.field = average, scheme, head, field
        self.names: tuple[str, ...] = ()
        self.types: tuple[str, ...] = ()

    def bind(self, spec: "ModelSpec", tokenizer: "Tokenizer | None") -> None:
        """Take the tags from the head's names.

        Raises:
            UsageError: the model has no such head, the head no names, or a name is no tag of the scheme.
        """
        from orrery.scores.entities import spans

        labels = labels_of("entity_f1", spec, self.head)
        names: tuple[str, ...] = tuple(getattr(spec.heads[self.head], "names", ()))
        if len(names) != labels:
            message = f"entity_f1: {len(names)} names for the {labels} labels of the head {self.head}"
            raise UsageError(message, "give the head `names`, one tag for each label")
        try:
            self.types = tuple(sorted({span[0] for name in names for span in spans([name])}))
            for name in names:
                spans([name], self.scheme)
        except DataError as error:
            what = error.message.partition(": ")[2]
            raise UsageError(f"entity_f1: the head {self.head}: {what}", error.hint) from None
        self.names = names

    def measure(self, model: Any, batch: "Batch", terms: "Mapping[str, Term]") -> "Tensor":
        """Return the counts ``[3 * types]``: predicted and right, predicted, right."""
        import numpy as np
        import torch

        from orrery.nn.cross_entropy import IGNORED
        from orrery.scores.entities import entity_counts

        right = field_of("entity_f1", batch, self.field)
        check_labels("entity_f1", right[right != IGNORED], len(self.names))
        labels_BL = said_by(model, batch, self.head).argmax(-1)
        counts = np.zeros((3, len(self.types)))
        for ours, theirs in zip(labels_BL.tolist(), right.tolist(), strict=True):
            words = [place for place, tag in enumerate(theirs) if tag != IGNORED]
            own, wanted = ([self.names[row[place]] for place in words] for row in (ours, theirs))
            counts += entity_counts(own, wanted, self.types, self.scheme)
        return torch.from_numpy(counts.ravel()).to(right.device)

    def value(self, sums: "Tensor", held_back: "HeldBack") -> float:
        """Return the averaged F1; 0 where no entity is marked."""
        from orrery.scores.precision_recall import f1_of

        return f1_of(sums.numpy(), self.average)
