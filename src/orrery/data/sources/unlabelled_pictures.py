"""Pictures without labels, to learn what pictures look like: IDX files, folders, tables, whatever they are called."""

from typing import Any, Literal

from orrery.data.sources import BatchRequest, Examples, register
from orrery.data.sources._pictures import AugmentSettings, PictureSource, examples_of_pictures
from orrery.data.sources._rows import RowsSettings, divided, fingerprint_of


class UnlabelledPicturesSettings(RowsSettings):
    """Which pictures, and how they are changed in training; see the source ``pictures``. Labels are not read."""

    kind: Literal["unlabelled_pictures"] = "unlabelled_pictures"
    augment: AugmentSettings = AugmentSettings()


@register
class UnlabelledPicturesSource(PictureSource):
    """Pictures alone; ``images`` are what the model reads [B, channels, rows, columns]."""

    Settings = UnlabelledPicturesSettings
    gives = ("images",)

    @classmethod
    def read(cls, settings: UnlabelledPicturesSettings) -> "UnlabelledPicturesSource":
        """Read the rows; the pictures of files are decoded when batches are asked for.

        Raises:
            DataError: there is none.
        """
        from orrery.data.rows.pictures import read_pictures

        def read(source: str) -> Any:
            return read_pictures(source, settings.skip_bad, labelled=False)

        return cls(*divided(settings, read), settings.augment)

    @property
    def fingerprint(self) -> str:
        """The sha256 of all pictures in their order, those held back too."""
        return fingerprint_of(row.key for row in (*self.train, *self.held_back))

    def examples(self, request: BatchRequest) -> Examples:
        """Decode the pictures, cut them to the model's size, and make batches.

        Raises:
            DataError: a file is damaged, or all together take too much memory.
            UsageError: the model reads no pictures.
        """
        return examples_of_pictures(request, (self.train, self.held_back), self.augment, lambda rows: {})
