"""Labelled pictures: IDX files as MNIST's, a folder for each label, or a table of files and labels."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from orrery.data.rows.label_notes import label_notes
from orrery.data.sources import BatchRequest, Examples, HeldBack, Source, register
from orrery.data.sources._rows import RowsSettings, divided, fingerprint_of, unseen
from orrery.errors import DataError, UsageError
from orrery.schema.numbers import Fraction, NotNegative
from orrery.schema.section import Section

if TYPE_CHECKING:
    from orrery.data.rows.pictures import LabelledPicture

NAME = "pictures"
"""What the pictures are called in metrics and tables."""
MOST_BYTES = 8 << 30
"""Of all pictures together, cut to the model's size: they are kept in memory."""


class AugmentSettings(Section):
    """What is changed at random in each picture that is trained on.

    ``rotate`` and ``shear`` are degrees, ``scale`` and ``shift`` shares, each to both sides; ``flip`` mirrors half of
    the pictures, left to right.
    """

    rotate: NotNegative = 0.0
    scale: Fraction = 0.0
    shear: NotNegative = 0.0
    shift: Fraction = 0.0
    flip: bool = False


class PicturesSettings(RowsSettings):
    """Which pictures, and how they are changed in training.

    ``train`` and ``val`` are each an IDX file of pictures, a folder with one or with a folder for each label, or a
    table of files and labels.
    """

    kind: Literal["pictures"] = "pictures"
    augment: AugmentSettings = AugmentSettings()


@register
class PicturesSource(Source):
    """Labelled pictures; ``images`` are what the model reads [B, channels, rows, columns], ``labels`` numbers [B]."""

    Settings = PicturesSettings
    gives = ("images", "labels")
    must_be_read = ("labels",)
    batch_kinds = ("pictures",)

    def __init__(
        self, train: "Sequence[LabelledPicture]", held_back: "Sequence[LabelledPicture]", augment: AugmentSettings
    ) -> None:
        self.train, self.held_back, self.augment = train, held_back, augment

    @classmethod
    def read(cls, settings: PicturesSettings) -> "PicturesSource":
        """Read the rows; the pictures of files are decoded when batches are asked for.

        Raises:
            DataError: there is none, all have one label, or one held back has a label of its own.
        """
        from orrery.data.rows.pictures import read_pictures

        def read(source: str) -> Any:
            return read_pictures(source, settings.skip_bad)

        found = cls(*divided(settings, read, lambda rows, every: [row.classes for row in rows]), settings.augment)
        known = found.labels
        if len(known) < 2:
            only = next(iter(known), "")
            raise DataError(
                f"{settings.train}: every picture is labelled {only!r}: there is nothing to tell apart", "add others"
            )
        for row in found.held_back:
            if row.target not in known:
                raise unseen(row.where, row.target, known, settings)
        return found

    @property
    def labels(self) -> Mapping[str, int]:
        """How often each label occurs in training."""
        from orrery.data.rows.labelled import counted

        return counted([row.target for row in self.train])

    def remarks(self) -> Sequence[str]:
        """Say how often each label occurs, and what stands on both sides or on one alone."""
        from orrery.data.rows.labelled import counted

        held_back = counted([row.target for row in self.held_back])
        return [*label_notes(self.labels, held_back, NAME, "rename the folder"), *super().remarks()]

    @property
    def fingerprint(self) -> str:
        """The sha256 of all pictures and their labels in their order, those held back too."""
        return fingerprint_of((row.key, row.target) for row in (*self.train, *self.held_back))

    def examples(self, request: BatchRequest) -> Examples:
        """Decode the pictures, cut them to the model's size, and make batches.

        Raises:
            DataError: a file is damaged, or all together take more than ``MOST_BYTES``.
            UsageError: the model reads no pictures.
        """
        from orrery.data.batches.pictures import PictureBatches, PicturesInTurn
        from orrery.data.pictures.augmenting import Augmentation

        if request.pictures is None:
            raise UsageError("the model reads tokens, the data are pictures", "name a family that reads them, as vit")
        preparation, _ = request.pictures
        changes = Augmentation(**self.augment.model_dump())
        held_back = None
        if self.held_back:
            others = PicturesInTurn(*self._decoded(request, self.held_back), preparation, request.size)
            held_back = HeldBack(others, request.limited(len(others)))
        train = PictureBatches(*self._decoded(request, self.train), preparation, request.size, request.seed, changes)
        return Examples(
            train=train,
            held_back=held_back,
            tokens={NAME: len(self.train)},
            batch_tokens=request.size,
            epochs=lambda step: {NAME: step * request.size / len(self.train)},
        )

    def _decoded(self, request: BatchRequest, rows: "Sequence[LabelledPicture]") -> tuple[Any, dict[str, Any]]:
        """Return the pixels of rows as the model's size has them, and their labels."""
        import torch

        from orrery.data.batches.pictures import stacked
        from orrery.reports.status import waiting

        assert request.pictures is not None
        preparation, shape = request.pictures
        size = len(rows) * shape[0] * shape[1] * shape[2]
        if size > MOST_BYTES:
            raise DataError(
                f"{len(rows):,} pictures of {shape[1]} x {shape[2]} take {size / 1e9:.0f} GB of memory",
                "train on fewer, or on smaller ones (model.config.image_size)",
            )
        numbers = {name: number for number, name in enumerate(request.labels or self.labels)}
        with waiting() as line:

            def decoded() -> Any:
                for number, row in enumerate(rows):
                    if not number % 100:
                        line.now(f"reading pictures: {number:,} of {len(rows):,}")
                    yield row.pixels()

            pixels = stacked(decoded(), len(rows), preparation, shape)
        return pixels, {"labels": torch.tensor([numbers[row.target] for row in rows])}
