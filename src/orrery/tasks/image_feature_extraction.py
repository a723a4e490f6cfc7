"""The final hidden states of a picture: nested lists of shape ``[1, L, D]``, the class token and the patches."""

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from orrery.errors import UsageError
from orrery.language_model.model import LanguageModel
from orrery.language_model.pictures import reads_pictures
from orrery.models.dual_encoder import DualEncoder
from orrery.models.model import HIDDEN
from orrery.nn.attention_pooler import AttentionPooler
from orrery.nn.heads import Pooler
from orrery.tasks._task import register
from orrery.tasks.pipelines._of_pictures import OfPictures
from orrery.tasks.pipelines._picture_rows import PictureRow, by_size
from orrery.tasks.pipelines._pipeline import PipelineSettings


class ImageFeatureExtractionSettings(PipelineSettings):
    """``pool`` gives the pooled vector in place of all; ``return_tensors`` gives tensors in place of lists."""

    pool: bool = False
    return_tensors: bool = False


@register
class ImageFeatureExtraction(OfPictures):
    """The final stream after the last norm, a vector for the class token and for each patch.

    ``pool`` gives ``[1, D]``: what the model's pooler makes of the class token. A picture is a path, a ``data:``
    address in base64, an array or a picture of Pillow's.

    Differs from transformers: of a captioner and of CLIP it is the stream of the side that sees; and a model without a
    pooler is refused one, where theirs makes a random one.
    """

    kind = "image_feature_extraction"
    route = "/v1/tasks/image-feature-extraction"
    said = "features"
    fields = ("picture",)
    Settings = ImageFeatureExtractionSettings

    @classmethod
    def fits(cls, lm: LanguageModel) -> bool:
        """Say whether the model reads pictures."""
        return reads_pictures(lm.stored) is not None

    def ask(self, rows: Sequence[PictureRow], settings: ImageFeatureExtractionSettings) -> Sequence[Tensor]:
        """Return the stream ``[L, D]`` of each picture, or its pooled vector ``[D]``."""
        head = _head(self.lm, settings)
        side = _side(self.lm.model)
        return by_size(rows, lambda images: side({"images": images}, (head,))[head].cpu())

    def answer(
        self, item: Any, rows: Sequence[Any], found: Sequence[Tensor], settings: ImageFeatureExtractionSettings
    ) -> Any:
        """Return the vectors with an axis for the one picture."""
        return found[0][None] if settings.return_tensors else found[0][None].tolist()


def _side(model: Any) -> Any:
    """Return what sees: the model, or the side of it that reads pictures before or beside a text."""
    if isinstance(model, DualEncoder):
        return model.sees
    return model.reader if model.spec.reads_source else model


def _head(lm: LanguageModel, settings: ImageFeatureExtractionSettings) -> str:
    """Return what gives the vectors: the stream itself, or the pooler.

    Raises:
        UsageError: the model has no pooler.
    """
    if not settings.pool:
        return HIDDEN
    heads = _side(lm.model).spec.heads
    poolers = [name for name, head in heads.items() if isinstance(head, Pooler.Spec | AttentionPooler.Spec)]
    if not poolers:
        raise UsageError("this model has no pooler", "leave pool away: the first vector is the class token's")
    return poolers[0]
