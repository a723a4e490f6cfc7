"""What the sources of pictures share: augmentation, decoding to the model's size, batches."""

from abc import ABC
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from orrery.data.sources import BatchRequest, Examples, HeldBack, Source
from orrery.data.sources._rows import fingerprint_of
from orrery.errors import DataError, UsageError
from orrery.schema.numbers import Fraction, NotNegative
from orrery.schema.section import Section

if TYPE_CHECKING:
    from torch import Tensor

    from orrery.data.batches.pictures import Follow
    from orrery.data.rows.pictures import LabelledPicture

NAME = "pictures"
"""What the pictures are called in metrics and tables."""
MOST_BYTES = 8 << 30
"""Of all pictures together, cut to the model's size: they are kept in memory."""

FieldsOf = Callable[[Sequence[Any]], "Mapping[str, Tensor]"]
"""Returns what else the batches have of some rows, a row for each."""


class AugmentSettings(Section):
    """What is changed at random in each picture that is trained on.

    ``rotate`` and ``shear`` are degrees, ``scale`` and ``shift`` shares, each to both sides; ``flip`` mirrors half of
    the pictures, left to right; ``crop`` is the share of the area that is cut away at most.
    """

    rotate: NotNegative = 0.0
    scale: Fraction = 0.0
    shear: NotNegative = 0.0
    shift: Fraction = 0.0
    flip: bool = False
    crop: Fraction = 0.0


class PictureSource(Source, ABC):
    """Pictures with what is learned of each, and how those that are trained on are changed."""

    batch_kinds = ("pictures",)

    def __init__(
        self, train: "Sequence[LabelledPicture]", held_back: "Sequence[LabelledPicture]", augment: AugmentSettings
    ) -> None:
        self.train, self.held_back, self.augment = train, held_back, augment

    @property
    def fingerprint(self) -> str:
        """The sha256 of all pictures and what is learned of them in their order, those held back too."""
        return fingerprint_of((row.key, row.target) for row in (*self.train, *self.held_back))


def pictures_read(request: BatchRequest) -> tuple[Any, tuple[int, int, int]]:
    """Return how the model's pictures are prepared, and their shape.

    Raises:
        UsageError: it reads no pictures.
    """
    if request.pictures is None:
        raise UsageError("the model reads tokens, the data are pictures", "name a family that reads them, as vit")
    return request.pictures


def examples_of_pictures(
    request: BatchRequest,
    sides: "tuple[Sequence[LabelledPicture], Sequence[LabelledPicture]]",
    augment: AugmentSettings,
    fields: FieldsOf,
    follow: "Follow" = lambda fields, maps: fields,
) -> Examples:
    """Return the batches of pictures: decoded, cut to the model's size.

    Args:
        request: what was asked for.
        sides: the rows to learn from, and those held back.
        augment: what is changed at random.
        fields: makes what else the batches have.
        follow: moves that with the pictures.

    Raises:
        DataError: a file is damaged, or all together take more than ``MOST_BYTES``.
        UsageError: the model reads no pictures.
    """
    from orrery.data.batches.pictures import PictureBatches, PicturesInTurn
    from orrery.data.pictures.augmenting import Augmentation

    preparation, _ = pictures_read(request)
    train, others = sides
    held_back = None
    if others:
        in_turn = PicturesInTurn(decoded(request, others), fields(others), preparation, request.size)
        held_back = HeldBack(in_turn, request.limited(len(in_turn)))
    changes = Augmentation(**augment.model_dump())
    pixels = decoded(request, train)
    batches = PictureBatches(pixels, fields(train), preparation, request.size, request.seed, changes, follow)
    return Examples(
        train=batches,
        held_back=held_back,
        tokens={NAME: len(train)},
        batch_tokens=request.size,
        epochs=lambda step: {NAME: step * request.size / len(train)},
    )


def decoded(request: BatchRequest, rows: "Sequence[LabelledPicture]") -> "Tensor":
    """Return the pixels of rows as the model's size has them.

    Raises:
        DataError: a file is damaged, or all together take more than ``MOST_BYTES``.
        UsageError: the model reads no pictures.
    """
    from orrery.data.batches.pictures import stacked
    from orrery.reports.status import waiting

    preparation, shape = pictures_read(request)
    size = len(rows) * shape[0] * shape[1] * shape[2]
    if size > MOST_BYTES:
        raise DataError(
            f"{len(rows):,} pictures of {shape[1]} x {shape[2]} take {size / 1e9:.0f} GB of memory",
            "train on fewer, or on smaller ones (model.config.image_size)",
        )
    with waiting() as line:

        def pixels() -> "Iterator[Tensor]":
            for number, row in enumerate(rows):
                if not number % 100:
                    line.now(f"reading pictures: {number:,} of {len(rows):,}")
                yield row.pixels()

        return stacked(pixels(), len(rows), preparation, shape)
