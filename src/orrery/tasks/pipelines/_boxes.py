"""The heads of a model that finds things: one over the patches, or YOLOS' two over its detection tokens."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from orrery.language_model.model import LanguageModel
from orrery.nn.heads import LastTokensHead
from orrery.nn.picture_heads import BoxHead
from orrery.tasks.pipelines._heads import head_of, names_of
from orrery.tasks.pipelines._picture_rows import PictureRow, by_size

CLASSES, BOXES = "classes", "boxes"


def ask_boxes(lm: LanguageModel, rows: Sequence[PictureRow], named: str | None, task: str) -> list[Tensor]:
    """Return what the queries of each picture say, ``[queries, labels + 1 + 4]``: scores, nothing the last, and boxes.

    Raises:
        UsageError: the model has no head for boxes.
    """
    names = (CLASSES, BOXES) if _in_two(lm) else (head_of(lm, BoxHead.Spec, BOXES, named, task)[0],)

    def ask(images: Tensor) -> Tensor:
        found = lm.model({"images": images}, names)
        return torch.cat([found[name] for name in names], -1).cpu()

    return by_size(rows, ask)


def names_of_things(lm: LanguageModel, named: str | None, task: str) -> list[str]:
    """Return what the labels of things are called, without the one for nothing.

    Raises:
        UsageError: the model has no head for boxes.
    """
    if _in_two(lm):
        own: Any = lm.model.spec.heads[CLASSES]
        return names_of(own.head)[:-1]
    return names_of(head_of(lm, BoxHead.Spec, BOXES, named, task)[1])


def finds_things(lm: LanguageModel) -> bool:
    """Say whether a model has a head for boxes."""
    return _in_two(lm) or any(isinstance(head, BoxHead.Spec) for head in lm.model.spec.heads.values())


def _in_two(lm: LanguageModel) -> bool:
    """Say whether one head scores the labels and another gives the boxes."""
    return isinstance(lm.model.spec.heads.get(CLASSES), LastTokensHead.Spec)
