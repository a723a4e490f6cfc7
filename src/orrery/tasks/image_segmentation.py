"""What each pixel of a picture belongs to: ``[{"score": None, "label": ..., "mask": ...}]``."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from orrery.models.pixel_scores import POINTS, labels_second, pixel_head
from orrery.nn.picture_heads import PixelHead
from orrery.scores import segmentation
from orrery.tasks._task import register
from orrery.tasks.finetuning._painting import beside, in_colours
from orrery.tasks.finetuning.findings import Findings, Mistake, label_names
from orrery.tasks.pipelines._heads import head_of, names_of
from orrery.tasks.pipelines._make import pipeline
from orrery.tasks.pipelines._of_pictures import LearnedOfPictures
from orrery.tasks.pipelines._picture_rows import PictureRow, ask_pictures, sized_picture
from orrery.tasks.pipelines._pipeline import PipelineSettings

if TYPE_CHECKING:
    from orrery.data.rows.pictures import LabelledPicture
    from orrery.language_model.model import LanguageModel

BATCH = 32
"""Pictures answered at once."""
SHOWN = 25
"""Pictures that a report shows."""


class ImageSegmentationSettings(PipelineSettings):
    """It has no settings but the head."""


@register
class ImageSegmentation(LearnedOfPictures):
    """One label of several for each pixel.

    It learns a head over every patch, or SegFormer's own. A picture is a path, a ``data:`` address in base64, an array
    or a picture of Pillow's. The answer is that of transformers' semantic segmentation: for each label that the picture
    shows its mask, 255 where it is, in the picture's own size; the scores are enlarged to it bilinearly before the
    likeliest is taken.
    """

    kind = "image_segmentation"
    route = "/v1/tasks/image-segmentation"
    said = "segments"
    source = "masks"
    objective = "segmentation"
    head = "pixel"
    Settings = ImageSegmentationSettings

    @classmethod
    def findings(cls, lm: "LanguageModel", source: Any, length: int, done: Any = None) -> Findings:
        """Return the mean IoU and the share of right pixels, the labels one by one, and pictures with their masks."""
        rows, names = source.held_back, label_names(lm, pixel_head(lm.model.spec, "pixel"))
        said = predicted(lm, rows, done)
        order = [list(source.labels).index(name) for name in names]
        right = [_numbers(source.target(row), order) for row in rows]
        scores = segmentation.mean_iou(said, right, len(names))
        usual = max(source.labels, key=lambda name: source.labels[name])
        empty = [np.full_like(each, names.index(usual)) for each in right]
        return Findings(
            scores=(scores, segmentation.pixel_accuracy(said, right)),
            examples=f"{len(rows):,} pictures held back",
            floors=[(f"every pixel {usual}", segmentation.mean_iou(empty, right, len(names)))],
            others=[(f"every pixel {usual}", segmentation.pixel_accuracy(empty, right))],
            mistakes=mistakes(rows, right, said, names),
            by_label=by_label(scores.sums.sum(0), names),
        )

    def ask(self, rows: Sequence[PictureRow], settings: ImageSegmentationSettings) -> Sequence[Any]:
        """Return the scores of the labels of each pixel."""
        name, _ = scored(self.lm, settings.head, self.task)
        return [labels_second(said[None], name)[0] for said in ask_pictures(self.lm, rows, name)]

    def answer(
        self, item: Any, rows: Sequence[Any], found: Sequence[Any], settings: ImageSegmentationSettings
    ) -> list[dict[str, Any]]:
        """Return the labels that the picture shows, the largest first, with their masks."""
        _, spec = scored(self.lm, settings.head, self.task)
        labels, names = likeliest(found[0], sized_picture(item)), names_of(spec)
        shown = np.bincount(labels.ravel(), minlength=len(names))
        order = sorted((number for number in range(len(names)) if shown[number]), key=lambda number: -shown[number])
        return [{"score": None, "label": names[number], "mask": as_mask(labels == number)} for number in order]

    @classmethod
    def fits(cls, lm: "LanguageModel") -> bool:
        """Say whether the model has a head for pixels."""
        heads = lm.model.spec.heads
        return POINTS in heads or any(isinstance(head, PixelHead.Spec) for head in heads.values())

    def told(self, answer: Any) -> list[dict[str, Any]]:
        """Return the labels with their masks as PNG files in base64."""
        from orrery.data.pictures.addresses import as_address

        return [{**each, "mask": as_address(np.asarray(each["mask"])[..., None])} for each in answer or ()]

    def lines(self, item: Any, answer: Any) -> Iterator[str]:
        """Return a line with the labels, the share of the picture that each has, and the picture's name."""
        shares = ((each["label"], (np.asarray(each["mask"]) > 0).mean()) for each in answer or ())
        shown = "  ".join(f"{label} {share:.4f}" for label, share in shares)
        yield f"{shown}  {item if isinstance(item, str) else ''}".rstrip()


def scored(lm: "LanguageModel", named: str | None, task: str) -> tuple[str, Any]:
    """Return the name and the spec of the head that scores pixels.

    Raises:
        UsageError: the model has none.
    """
    if named is None and POINTS in lm.model.spec.heads:
        return POINTS, lm.model.spec.heads[POINTS]
    return head_of(lm, PixelHead.Spec, "pixel", named, task)


def likeliest(scores: Any, size: tuple[int, int]) -> NDArray[np.int64]:
    """Return the likeliest label of each pixel in a size, ``[rows, columns]``."""
    from orrery.objectives.segmentation import enlarged

    found: NDArray[np.int64] = enlarged(scores[None].float(), size)[0].argmax(0).numpy()
    return found


def as_mask(shown: NDArray[np.bool_]) -> Any:
    """Return 255 where a label is and 0 elsewhere, as a picture of Pillow's where that is installed, else an array."""
    from orrery.data.pictures.pillow import pillow

    image, array = pillow(), shown.astype(np.uint8) * 255
    return array if image is None else image.fromarray(array)


def predicted(lm: "LanguageModel", rows: "Sequence[LabelledPicture]", done: Any = None) -> list[NDArray[np.int64]]:
    """Return the likeliest label of each pixel of each picture, by its number in the head."""
    ask, names = (
        pipeline("image-segmentation", lm, batch_size=BATCH),
        label_names(lm, pixel_head(lm.model.spec, "pixel")),
    )
    found = []
    for answer in ask([row.pixels().permute(1, 2, 0) for row in rows], done=done):
        masks = [(names.index(each["label"]), np.asarray(each["mask"]) > 0) for each in answer]
        found.append(np.sum([number * mask.astype(np.int64) for number, mask in masks], axis=0))
    return found


def by_label(sums: Any, names: Sequence[str]) -> list[tuple[str, float, float, float, int]]:
    """Return precision, recall, F1 and the pixels of each label that occurs."""
    both, said, right = sums.reshape(3, -1)
    return [
        (name, b / max(1, p), b / max(1, g), 2 * b / (p + g), int(g))
        for name, b, p, g in zip(names, both, said, right, strict=True)
        if p + g
    ]


def mistakes(
    rows: "Sequence[LabelledPicture]",
    right: Sequence[NDArray[np.int64]],
    said: Sequence[NDArray[np.int64]],
    names: Sequence[str],
) -> list[Mistake]:
    """Return the pictures with the most wrong pixels, each beside its right mask and the one that was said."""
    wrong = [
        int(((one != other) & (other != segmentation.IGNORED)).sum()) for one, other in zip(said, right, strict=True)
    ]
    worst = sorted((n for n in range(len(rows)) if wrong[n]), key=lambda n: -wrong[n])[:SHOWN]
    found = []
    for n in worst:
        shown = beside(rows[n].pixels(), in_colours(right[n], len(names)), in_colours(said[n], len(names)))
        gold, told = (", ".join(names[k] for k in np.unique(each) if k >= 0) for each in (right[n], said[n]))
        found.append(Mistake(f"{rows[n].where}: picture, right, said", gold, told, None, shown))
    return found


def _numbers(target: Any, order: Sequence[int]) -> NDArray[np.int64]:
    """Return the labels of pixels by their numbers in a head, of whose labels each has its number in ``order``."""
    table = np.full(256, segmentation.IGNORED)
    table[list(order)] = np.arange(len(order))
    found: NDArray[np.int64] = table[target.numpy()]
    return found
