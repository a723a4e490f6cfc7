"""The final hidden states of a text: nested lists of shape ``[1, L, D]``."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from orrery.language_model.model import LanguageModel
from orrery.models.model import HIDDEN
from orrery.tasks._task import register
from orrery.tasks.pipelines._pipeline import Pipeline, PipelineSettings, text_of
from orrery.tasks.pipelines._rows import InputRow, ask, padded, whole


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

    def rows(self, item: Any, settings: FeatureExtractionSettings) -> Sequence[InputRow]:
        """Return the one row of a text."""
        return [whole(self.lm, text_of(item, self.task), truncation=settings.truncation)]

    def ask(self, rows: Sequence[InputRow], settings: FeatureExtractionSettings) -> Sequence[Tensor]:
        """Return the stream ``[L, D]`` of each row."""
        return streams(self.lm, rows)

    def answer(
        self, item: Any, rows: Sequence[InputRow], outputs: Sequence[Any], settings: FeatureExtractionSettings
    ) -> Any:
        """Return the stream with an axis for the one text."""
        return outputs[0][None] if settings.return_tensors else outputs[0][None].tolist()


def streams(lm: LanguageModel, rows: Sequence[InputRow]) -> list[Tensor]:
    """Return the final stream ``[L, D]`` of each row: the encoder's, where the model writes beside a source."""
    lengths = [len(row.ids) for row in rows]
    if lm.model.spec.reads_source:
        real_BL = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
        ids_BL = padded([row.ids for row in rows], max(lengths)).to(lm.device)
        x_BLD = lm.hidden(ids_BL, real_BL.long().to(lm.device)).cpu()
    else:
        x_BLD = ask(lm, rows, HIDDEN)[0]
    return [x_LD[:length] for x_LD, length in zip(x_BLD, lengths, strict=True)]
