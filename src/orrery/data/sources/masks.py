"""Pictures with a mask that says of each pixel what it belongs to: folders as ADE20k's, or a table of both."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from orrery.data.rows.label_notes import label_notes
from orrery.data.sources import BatchRequest, Examples, Source, register
from orrery.data.sources._pictures import AugmentSettings, examples_of_pictures, pictures_read
from orrery.data.sources._rows import RowsSettings, divided, fingerprint_of
from orrery.errors import DataError

if TYPE_CHECKING:
    from torch import Tensor

    from orrery.data.rows.pictures import LabelledPicture

UNLABELLED = 255
"""The number of pixels that belong to nothing, in every published layout."""


class MasksSettings(RowsSettings):
    """Which pictures with their masks, and how they are changed in training.

    ``train`` and ``val`` are each a folder with ``images`` and ``annotations``, a part of one, a table of two files, or
    a set that is made here. ``names`` are those of the numbers from 0; with ``reduce_labels`` the number 0 belongs to
    nothing and the others count from 1, as ADE20k has them.
    """

    kind: Literal["masks"] = "masks"
    names: tuple[str, ...] = Field(default=())
    reduce_labels: bool = False
    augment: AugmentSettings = AugmentSettings()


@register
class MasksSource(Source):
    """Pictures and labels of pixels; ``targets`` [B, rows, columns] has the label of each, -100 where it has none."""

    Settings = MasksSettings
    gives = ("images", "targets")
    must_be_read = ("targets",)
    batch_kinds = ("pictures",)

    def __init__(
        self,
        train: "Sequence[LabelledPicture]",
        held_back: "Sequence[LabelledPicture]",
        settings: MasksSettings,
    ) -> None:
        self.train, self.held_back, self.settings = train, held_back, settings

    @classmethod
    def read(cls, settings: MasksSettings) -> "MasksSource":
        """Read the rows; pictures are decoded when batches are asked for.

        Raises:
            DataError: there is none, a picture has no mask, or the masks name one thing at most.
        """
        from orrery.data.rows.masks import names_of, read_masked

        def read(source: str) -> Any:
            return read_masked(source, settings.skip_bad)

        train, others = divided(settings, read)
        names = tuple(settings.names or names_of(settings.train))
        own = settings.model_copy(
            update={"names": names[1:] if settings.reduce_labels and not settings.names else names}
        )
        found = cls(train, others, own)
        if sum(count > 0 for count in found.labels.values()) < 2:
            only = next((name for name, count in found.labels.items() if count), "nothing")
            raise DataError(
                f"{settings.train}: every pixel belongs to {only}: there is nothing to tell apart",
                "add others; where a mask has 0 and 255 write 0 and 1, as 255 is what belongs to nothing",
            )
        return found

    @cached_property
    def _counts(self) -> "Mapping[str, int]":
        """How many pixels of training each label has."""
        from orrery.data.rows.masks import counts_of

        numbers = counts_of([row.target for row in self.train]).tolist()[:UNLABELLED]
        numbers = numbers[1:] if self.settings.reduce_labels else numbers
        most = max((number + 1 for number, count in enumerate(numbers) if count), default=0)
        names = self.settings.names or [f"LABEL_{number}" for number in range(most)]
        if most > len(names):
            unknown = most - 1 + self.settings.reduce_labels
            raise DataError(
                f"{self.settings.train}: a mask has the number {unknown}, and there are {len(names)} names",
                "give data.names one for each number, or mark such pixels with 255: they belong to nothing",
            )
        return dict(zip(names, numbers, strict=False)) | {name: 0 for name in names[len(numbers) :]}

    @property
    def labels(self) -> Mapping[str, int]:
        """How many pixels of training each label has."""
        return self._counts

    def remarks(self) -> Sequence[str]:
        """Say how many pixels each label has, and what stands on both sides."""
        return [*label_notes(self.labels, {}, "pixels", "mend the masks"), *super().remarks()]

    @property
    def fingerprint(self) -> str:
        """The sha256 of all pictures and their masks in their order, those held back too."""
        return fingerprint_of((row.key, key_of(row)) for row in (*self.train, *self.held_back))

    def examples(self, request: BatchRequest) -> Examples:
        """Decode pictures and masks, cut them to the model's size, and make batches.

        Raises:
            DataError: a file is damaged, a mask has another size than its picture, or a number that is no label.
            UsageError: the model reads no pictures.
        """
        sides = (self.train, self.held_back)
        return examples_of_pictures(
            request, sides, self.settings.augment, lambda rows: self._masks(request, rows), follow
        )

    def target(self, row: "LabelledPicture") -> "Tensor":
        """Return the label of each pixel of a row, ``[rows, columns]`` in bytes, 255 where it has none.

        Raises:
            DataError: the mask has another size than the picture, or a number that is no label.
        """
        import torch

        numbers, shape = row.target.numbers(), tuple(row.pixels().shape[1:])
        if tuple(numbers.shape) != shape:
            what = f"{row.target.where} has {' x '.join(map(str, numbers.shape))} pixels, its picture "
            raise DataError(what + " x ".join(map(str, shape)), "a mask has the size of its picture")
        if self.settings.reduce_labels:
            numbers = torch.where(numbers == 0, UNLABELLED, numbers.long() - 1).to(torch.uint8)
        beyond = numbers[(numbers >= len(self.labels)) & (numbers != UNLABELLED)]
        if beyond.numel():
            hint = "give data.names one for each number, or mark such pixels with 255: they belong to nothing"
            raise DataError(f"{row.target.where} has the label {int(beyond[0])}, which no training mask has", hint)
        return numbers

    def _masks(self, request: BatchRequest, rows: "Sequence[LabelledPicture]") -> "dict[str, Tensor]":
        import torch

        from orrery.nn.cross_entropy import IGNORED

        preparation, _ = pictures_read(request)
        nearest = replace(preparation, resample=0)  # between two labels lies no third
        masks = torch.stack([nearest.cut(self.target(row)[None])[0] for row in rows]).to(torch.int16)
        return {"targets": masks.masked_fill(masks == UNLABELLED, IGNORED)}


def follow(fields: "Mapping[str, Tensor]", maps: "Tensor") -> "Mapping[str, Tensor]":
    """Return the labels of pixels as the pictures' maps move them."""
    from orrery.data.pictures.augmenting import moved_labels

    return {**fields, "targets": moved_labels(fields["targets"], maps)}


def key_of(row: "LabelledPicture") -> str:
    """Return the sha256 of the numbers of a mask."""
    import hashlib

    return hashlib.sha256(row.target.numbers().numpy().tobytes()).hexdigest()
