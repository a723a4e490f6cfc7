"""What the matcher makes of texts: how likely each cluster is, and the vector that the ranker reads."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Float
from torch import Tensor

from orrery.generation.batched import in_batches
from orrery.tasks._task import Done
from orrery.tasks.pipelines._rows import InputRow, batch_of, room_of, row

if TYPE_CHECKING:
    from orrery.language_model.model import LanguageModel
    from orrery.tasks.xbert.ranker import Ranking

HEAD = "sequence"
BATCH = 64


@dataclass(frozen=True)
class Matched:
    """What the encoder says of a text.

    Attributes:
        log_p_Z: the logarithm of each cluster's probability.
        vector_E: what the head pools, of length one.
    """

    log_p_Z: Float[Tensor, "Z"]
    vector_E: Float[Tensor, "E"]

    def best(self, count: int) -> "Ranking":
        """Return the likeliest clusters, equal ones in the order of their numbers."""
        order = self.log_p_Z.argsort(descending=True, stable=True)[:count]
        return [(int(group), float(self.log_p_Z[group])) for group in order]


def row_of(lm: "LanguageModel", text: str, length: int) -> InputRow:
    """Return a text as ids, cut at the length of rows in training: the ranker reads the words of all of it.

    Raises:
        DataError: there is not one token.
    """
    return row(lm, lm.tokenizer.encode(text)[: room_of(lm, paired=False, length=min(length, lm.context))])


def match(lm: "LanguageModel", rows: Sequence[InputRow], head: str = HEAD) -> list[Matched]:
    """Return what the encoder says of rows, as one batch."""
    batch, _ = batch_of(lm, rows)

    def both(own: Any, x_BLD: Tensor, real_BL: Tensor | None) -> tuple[Tensor, Tensor]:
        vectors_BE = own.pooler(x_BLD, real_BL)
        logits_BZ = own.unit(own.labels(vectors_BE)).float()
        return logits_BZ.log_softmax(-1).cpu(), torch.nn.functional.normalize(vectors_BE.float(), dim=-1).cpu()

    return [Matched(*each) for each in zip(*lm.model(batch, {head: both})[head], strict=True)]


def matched(lm: "LanguageModel", texts: Sequence[str], length: int, done: Done | None = None) -> list[Matched]:
    """Return what the encoder says of many texts."""
    rows = [row_of(lm, text, length) for text in texts]
    with torch.no_grad():
        return in_batches(
            [len(each.ids) for each in rows],
            BATCH,
            lambda numbers: match(lm, [rows[number] for number in numbers]),
            None if done is None else lambda count: done(count, len(rows)),
        )
