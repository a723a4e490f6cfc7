"""The final hidden states of a text: nested lists of shape ``[1, L, D]``."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from orrery.errors import DataError, UsageError
from orrery.generation.batched import in_batches
from orrery.language_model.model import LanguageModel
from orrery.models.model import HIDDEN
from orrery.nn.embeddings import check_ids
from orrery.pipelines._pipeline import Pipeline, PipelineSettings, register, text_of
from orrery.pipelines._rows import Row, ask, padded, too_long, vocabulary, whole


class FeatureExtractionSettings(PipelineSettings):
    """``return_tensors`` gives tensors in place of lists."""

    return_tensors: bool = False


@register
class FeatureExtraction(Pipeline):
    """The final stream after the last norm, special tokens among the L.

    Differs from transformers for encoder-decoders: theirs feed the text to the decoder too, or refuse; here it is the
    stream of the encoder.
    """

    kind = "feature_extraction"
    Settings = FeatureExtractionSettings

    def rows(self, item: Any, settings: FeatureExtractionSettings) -> Sequence[Row]:
        """Return the one row of a text."""
        return [whole(self.lm, text_of(item, self.task), truncation=settings.truncation)]

    def ask(self, rows: Sequence[Row], settings: FeatureExtractionSettings) -> Sequence[Tensor]:
        """Return the stream ``[L, D]`` of each row."""
        return streams(self.lm, rows)

    def answer(self, item: Any, rows: Sequence[Row], found: Sequence[Any], settings: FeatureExtractionSettings) -> Any:
        """Return the stream with an axis for the one text."""
        return found[0][None] if settings.return_tensors else found[0][None].tolist()


def streams(lm: LanguageModel, rows: Sequence[Row]) -> list[Tensor]:
    """Return the final stream ``[L, D]`` of each row: the encoder's, where the model writes beside a source."""
    lengths = [len(row.ids) for row in rows]
    if lm.model.spec.reads_source:
        real_BL = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
        ids_BL = padded([row.ids for row in rows], max(lengths)).to(lm.device)
        x_BLD = lm.hidden(ids_BL, real_BL.long().to(lm.device)).cpu()
    else:
        x_BLD = ask(lm, rows, HIDDEN)[0]
    return [x_LD[:length] for x_LD, length in zip(x_BLD, lengths, strict=True)]


def mean_vector(x_LD: Float[Tensor, "L D"], *, normalise: bool = False) -> Float[Tensor, "D"]:
    """Return ``m = mean_L x``, or ``m / |m|``, in float32 at least; a text of zeros stays one."""
    mean_D = x_LD.to(torch.promote_types(x_LD.dtype, torch.float32)).mean(0)
    return mean_D / mean_D.norm().clamp(min=1e-12) if normalise else mean_D


@dataclass(frozen=True)
class TextVector:
    """The vector of a text, of length 1, and how many tokens were read for it."""

    vector: NDArray[np.floating[Any]]
    tokens: int


def text_vectors(
    lm: LanguageModel,
    items: Sequence[str | Sequence[int]],
    *,
    batch_size: int = 1,
    truncation: bool = False,
    done: Callable[[int, int], None] = lambda count, total: None,
) -> list[TextVector]:
    """Return ``m / |m|`` with ``m = mean_L x`` of each text, or of each row of ids, which is read as it is.

    Args:
        lm: any model of texts.
        items: texts, which get the special tokens of the family, or ids.
        batch_size: rows computed at once.
        truncation: leave out the end of what is longer than the context.
        done: told after each batch how many rows are done, and of how many.

    Raises:
        UsageError: a row longer than the context; which of several is said.
        DataError: a row without ids, or with one outside the vocabulary.
    """
    several = len(items) > 1
    rows = [_row(lm, item, truncation, f"input {place + 1}: " if several else "") for place, item in enumerate(items)]

    def vectors(numbers: list[int]) -> list[TextVector]:
        found = streams(lm, [rows[number] for number in numbers])
        return [TextVector(mean_vector(x_LD, normalise=True).numpy(), len(x_LD)) for x_LD in found]

    with torch.no_grad():
        lengths = [len(row.ids) for row in rows]
        return in_batches(lengths, batch_size, vectors, lambda count: done(count, len(rows)))


def _row(lm: LanguageModel, item: str | Sequence[int], truncation: bool, where: str) -> Row:
    """Return a text with its special tokens, or ids as they are."""
    try:
        if isinstance(item, str):
            return whole(lm, item, truncation=truncation)
        if not item:
            raise DataError("there is not one id", "give at least one")
        item = item[: lm.context] if truncation else item
        if len(item) > lm.context:
            raise too_long(len(item), lm.context)
        check_ids(torch.tensor(item, dtype=torch.long), vocabulary(lm))
    except (UsageError, DataError) as error:
        raise type(error)(f"{where}{error.message}", error.hint) from None
    return Row(list(item), [0] * len(item), [0] * len(item))
