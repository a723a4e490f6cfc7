"""Which of the labels that a caller names fit a picture, by a model of pictures and texts: CLIP and its kin."""

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from orrery.errors import UsageError
from orrery.language_model.model import LanguageModel
from orrery.models.dual_encoder import DualEncoder, Pair
from orrery.schema.numbers import Positive
from orrery.tasks._task import register
from orrery.tasks.pipelines._of_pictures import OfPictures
from orrery.tasks.pipelines._picture_rows import PictureRow, by_size, picture_row
from orrery.tasks.pipelines._pipeline import PipelineSettings
from orrery.tasks.pipelines._text_vectors import text_vectors
from orrery.tasks.zero_shot_classification import filled, labels_of


class ZeroShotImageClassificationSettings(PipelineSettings):
    """The labels, a list or a text with commas; the sentence that each becomes.

    ``top_k`` labels are told, all where it is null.
    """

    candidate_labels: list[str] | str | None = None
    hypothesis_template: str = "This is a photo of {}."
    top_k: Positive | None = None


@register
class ZeroShotImageClassification(OfPictures):
    """``softmax`` over how well a picture fits the sentence of each label (Radford et al. 2021, 3.1.2).

    Of a model whose similarity has a bias, which learned of each pair alone whether it fits, it is ``sigmoid`` of each
    (Zhai et al. 2023). A picture is a path, a ``data:`` address in base64, an array or a picture of Pillow's. As in
    transformers a picture has a list for its answer, the likeliest label first.
    """

    kind = "zero_shot_image_classification"
    route = "/v1/tasks/zero-shot-image-classification"
    said = "labels"
    fields = ("picture",)
    Settings = ZeroShotImageClassificationSettings

    def __init__(self, lm: LanguageModel, task: str, batch_size: int = 1, **settings: Any) -> None:
        super().__init__(lm, task, batch_size, **settings)
        self._known: tuple[PipelineSettings, Tensor] | None = None
        if not self.fits(lm):
            raise UsageError(f"{task} needs a model of pictures and texts", "load one of the family clip or siglip")

    def __call__(self, inputs: Any, candidate_labels: list[str] | str | None = None, **settings: Any) -> Any:
        """Return the labels, the most probable first; see ``Pipeline``."""
        if candidate_labels is not None:
            settings["candidate_labels"] = candidate_labels
        return super().__call__(inputs, **settings)

    @classmethod
    def fits(cls, lm: LanguageModel) -> bool:
        """Say whether the model compares pictures with texts, and has a tokenizer for them."""
        return isinstance(lm.model, DualEncoder) and lm.stored.tokenizer is not None

    def rows(self, item: Any, settings: ZeroShotImageClassificationSettings) -> Sequence[Any]:
        """Return the one row of a picture."""
        labels_of(settings, self.task)
        return [picture_row(self.lm, item)]

    def ask(self, rows: Sequence[PictureRow], settings: ZeroShotImageClassificationSettings) -> Sequence[Tensor]:
        """Return the score of each label for each picture."""
        model: Any = self.lm.model
        images = torch.stack(by_size(rows, lambda images: model.vectors(model.sees, {"images": images})))
        head = model.heads["similarity"]
        scored_BN = head(Pair(images, self._labels(settings))).cpu()
        return list(scored_BN.softmax(-1) if head.bias is None else scored_BN.sigmoid())

    def answer(
        self,
        item: Any,
        rows: Sequence[Any],
        outputs: Sequence[Tensor],
        settings: ZeroShotImageClassificationSettings,
    ) -> list[dict[str, Any]]:
        """Return the labels in the order of their scores."""
        labels, scores = labels_of(settings, self.task), outputs[0].tolist()
        order = sorted(range(len(labels)), key=lambda n: -scores[n])[: settings.top_k]
        return [{"score": scores[n], "label": labels[n]} for n in order]

    def lines(self, item: Any, answer: Any) -> Iterator[str]:
        """Return a line with the labels, their scores, and the picture's name."""
        shown = "  ".join(f"{label['label']} {label['score']:.4f}" for label in answer)
        yield f"{shown}  {item if isinstance(item, str) else ''}".rstrip()

    def _labels(self, settings: ZeroShotImageClassificationSettings) -> Float[Tensor, "N E"]:
        """Return the vectors of the sentences of the labels, which all batches of one call share."""
        known = self._known  # another call may put its own in the place of these meanwhile
        if known is None or known[0] is not settings:
            sentences = [filled(settings.hypothesis_template, label) for label in labels_of(settings, self.task)]
            known = self._known = settings, text_vectors(self.lm, sentences, truncation=settings.truncation)
        return known[1]
