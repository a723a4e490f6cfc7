"""Pictures as rows of a pipeline: prepared as the model's files say, and asked as one batch."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from orrery.data.pictures.addresses import content_of, is_address
from orrery.data.pictures.files import dimensions
from orrery.errors import UsageError
from orrery.language_model.model import LanguageModel
from orrery.language_model.pictures import images_of, pixels_given

Said = TypeVar("Said")
"""What is said of a picture."""
MOST_SENT = 1 << 24
"""Pixels of a picture that a client sends: several are read at once, and a few bytes may say that there are many."""


@dataclass(frozen=True)
class PictureRow:
    """A picture that the model reads.

    Attributes:
        images: as the model reads it.
        ids: a place for each patch: pictures of one length are computed together.
        number: of the input, among several.
    """

    images: Float[Tensor, "1 channels rows columns"]
    ids: range
    number: int = 0

    @property
    def read(self) -> Float[Tensor, "1 channels rows columns"]:
        """What a model that writes reads."""
        return self.images


def picture_row(lm: LanguageModel, item: Any) -> PictureRow:
    """Return the row of a picture: a path, a ``data:`` address, an array or a picture of Pillow's.

    Raises:
        UsageError: the model reads no pictures, or what is given is none.
        DataError: the file is damaged.
    """
    images = images_of(lm.stored, item)
    if len(images) != 1:
        raise UsageError(f"{len(images)} pictures in one array, where one is read", "give a list of them")
    return PictureRow(images, range(lm.context))


def ask_pictures(lm: LanguageModel, rows: Sequence[PictureRow], head: str) -> list[Tensor]:
    """Return what a head says of each picture."""
    return by_size(rows, lambda images: lm.model({"images": images}, (head,))[head].cpu())


def by_size(rows: Sequence[PictureRow], ask: Callable[[Tensor], Iterable[Said]]) -> list[Said]:
    """Return what is said of each picture; those of one size are asked as one batch."""
    answers: dict[int, Said] = {}
    for shape in dict.fromkeys(row.images.shape for row in rows):
        places = [place for place, row in enumerate(rows) if row.images.shape == shape]
        answers.update(zip(places, ask(torch.cat([rows[place].images for place in places])), strict=True))
    return [answers[place] for place in range(len(rows))]


def sent_picture(item: Any) -> str:
    """Return a picture that a client has sent: its content, no path of this machine and no address of another.

    Raises:
        UsageError: it is something else, or has more than ``MOST_SENT`` pixels.
        DataError: it is no base64.
    """
    if isinstance(item, str) and is_address(item):
        rows, columns = dimensions(content_of(item)) or (0, 0)
        if rows * columns > MOST_SENT:
            message = f"a picture of {rows:,} rows of {columns:,} pixels; a client may send {MOST_SENT:,} pixels"
            raise UsageError(message, "make it smaller: the model reads less")
        return item
    raise UsageError(
        "a picture is sent as its content; the server opens no file and fetches no address for a client",
        "send data:image/png;base64,...",
    )


def sized_picture(item: Any) -> tuple[int, int]:
    """Return the rows and columns of a picture that is given, those of the model's own where it is an array for it."""
    if isinstance(item, np.ndarray | torch.Tensor):
        array = torch.as_tensor(item)
        return (array.shape[-2], array.shape[-1]) if array.is_floating_point() else (array.shape[0], array.shape[1])
    return tuple(pixels_given(item).shape[1:])  # type: ignore[return-value]
