"""Labelled pictures: IDX files as MNIST's, a folder for each label, or a table of files and labels."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from orrery.data.rows.label_notes import label_notes
from orrery.data.sources import BatchRequest, Examples, register
from orrery.data.sources._pictures import NAME, AugmentSettings, PictureSource, examples_of_pictures
from orrery.data.sources._rows import RowsSettings, divided, unseen
from orrery.errors import DataError
from orrery.schema.numbers import Count, Positive
from orrery.schema.section import Section

if TYPE_CHECKING:
    from orrery.data.rows.pictures import LabelledPicture


class FewSettings(Section):
    """``each`` pictures of every label are trained on, chosen by the sha256 of the picture and of ``choice``."""

    each: Positive
    choice: Count = 0


class PicturesSettings(RowsSettings):
    """Which pictures, and how they are changed in training.

    ``train`` and ``val`` are each an IDX file of pictures, a folder with one or with a folder for each label, a table
    of files and labels, or a set that is made here; ``SOURCE[:7000]`` is its first pictures. ``picture`` and ``label``
    name the columns of a table where their own names do not say it. ``few`` keeps a few of each label to learn from.
    """

    kind: Literal["pictures"] = "pictures"
    picture: str | None = None
    label: str | None = None
    augment: AugmentSettings = AugmentSettings()
    few: FewSettings | None = None


@register
class PicturesSource(PictureSource):
    """Labelled pictures; ``images`` are what the model reads [B, channels, rows, columns], ``labels`` numbers [B]."""

    Settings = PicturesSettings
    gives = ("images", "labels")
    must_be_read = ("labels",)

    @classmethod
    def read(cls, settings: PicturesSettings) -> "PicturesSource":
        """Read the rows; the pictures of files are decoded when batches are asked for.

        Raises:
            DataError: there is none, all have one label, or one held back has a label of its own.
        """
        from orrery.data.rows.pictures import read_pictures

        def read(source: str) -> Any:
            return read_pictures(source, settings.skip_bad, (settings.picture, settings.label))

        train, others = divided(settings, read, lambda rows, every: [row.classes for row in rows])
        found = cls(train if settings.few is None else few_of(train, settings.few), others, settings.augment)
        known = found.labels
        if len(known) < 2:
            only = next(iter(known), "")
            raise DataError(
                f"{settings.train}: every picture is labelled {only!r}: there is nothing to tell apart",
                "add others; of folders name the one that has a folder for each label, or a table of files and labels",
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

    def examples(self, request: BatchRequest) -> Examples:
        """Decode the pictures, cut them to the model's size, and make batches.

        Raises:
            DataError: a file is damaged, or all together take more than ``MOST_BYTES``.
            UsageError: the model reads no pictures.
        """
        import torch

        numbers = {name: number for number, name in enumerate(request.labels or self.labels)}
        return examples_of_pictures(
            request,
            (self.train, self.held_back),
            self.augment,
            lambda rows: {"labels": torch.tensor([numbers[row.target] for row in rows])},
        )


def few_of(rows: "Sequence[LabelledPicture]", few: FewSettings) -> "list[LabelledPicture]":
    """Return as many rows of each label as are asked for, in their order.

    Raises:
        DataError: a label has fewer.
    """
    chosen: set[int] = set()
    for label in dict.fromkeys(row.target for row in rows):
        own = [number for number, row in enumerate(rows) if row.target == label]
        if len(own) < few.each:
            what = f"the label {label!r} has {len(own):,} pictures to train on, and {few.each:,} of each are asked for"
            raise DataError(what, "lower data.few.each")
        own.sort(key=lambda number: hashlib.sha256(f"{few.choice} {rows[number].key}".encode()).hexdigest())
        chosen.update(own[: few.each])
    return [row for number, row in enumerate(rows) if number in chosen]
