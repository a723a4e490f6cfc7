"""Pictures and texts as neighbours, learned from pairs of both; asked as ``zero-shot-image-classification``."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from orrery.scores.resampled import Resampled, mean_of
from orrery.scores.signature import signature
from orrery.tasks._task import register
from orrery.tasks.finetuning.findings import Findings, Mistake
from orrery.tasks.pipelines._of_pictures import LearnedOfCaptions

if TYPE_CHECKING:
    from torch import Tensor

    from orrery.data.rows.pictures import LabelledPicture
    from orrery.language_model.model import LanguageModel

BATCH = 64
"""Pictures read at once."""


@register
class Contrast(LearnedOfCaptions):
    """Vectors of pictures and of texts that are near each other where the text is about the picture (CLIP)."""

    kind = "contrast"
    objective = "contrast"
    asked_as = "zero_shot_image_classification"

    @classmethod
    def findings(cls, lm: "LanguageModel", source: Any, length: int, done: Any = None) -> Findings:
        """Return how often a picture finds its caption among all that are held back, and a caption its picture.

        The floor is a guess: the share of the captions that is right.
        """
        from orrery.tasks.pipelines._text_vectors import text_vectors

        rows: Sequence[LabelledPicture] = source.held_back
        captions = list(dict.fromkeys(caption for row in rows for caption in row.target))
        near_NM = (picture_vectors(lm, rows, done) @ text_vectors(lm, captions, truncation=True).mT).cpu()
        owns = [{captions.index(caption) for caption in row.target} for row in rows]
        best = near_NM.argmax(1).tolist()
        whose = [{n for n, own in enumerate(owns) if m in own} for m in range(len(captions))]
        wrong = sorted((n for n in range(len(rows)) if best[n] not in owns[n]), key=lambda n: -float(near_NM[n].max()))
        guess = [len(own) / len(captions) for own in owns]
        return Findings(
            scores=(
                hits("caption", 1, near_NM, owns),
                hits("caption", 10, near_NM, owns),
                hits("picture", 1, near_NM.mT, whose),
                hits("picture", 10, near_NM.mT, whose),
            ),
            examples=f"{len(rows):,} pictures held back, with {len(captions):,} captions",
            floors=[("a guess", mean_of("caption hit@1", signature(n=len(rows), k=1), guess))],
            mistakes=[
                Mistake(rows[n].where, rows[n].target[0], captions[best[n]], None, rows[n].pixels()) for n in wrong
            ],
        )


def hits(what: str, k: int, near_NM: "Tensor", right: Sequence[set[int]]) -> Resampled:
    """Return the share of rows with a right one among the ``k`` nearest."""
    nearest = near_NM.topk(min(k, near_NM.shape[1]), 1).indices.tolist()
    found = [float(bool(own & set(some))) for own, some in zip(right, nearest, strict=True)]
    return mean_of(f"{what} hit@{k}", signature(n=len(found), k=k), found)


def picture_vectors(lm: "LanguageModel", rows: "Sequence[LabelledPicture]", done: Any = None) -> "Tensor":
    """Return the vector of each picture, of length one."""
    import torch

    from orrery.language_model.pictures import images_of

    model: Any = lm.model
    found: list[Tensor] = []
    for first in range(0, len(rows), BATCH):
        some = [images_of(lm.stored, row.pixels().permute(1, 2, 0)) for row in rows[first : first + BATCH]]
        with torch.no_grad():
            found.append(model.vectors(model.sees, {"images": torch.cat(some)}))
        if done is not None:
            done(first + len(some), len(rows))
    return torch.cat(found)
