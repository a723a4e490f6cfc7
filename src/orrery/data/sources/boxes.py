"""Pictures with things and the boxes around them: files as COCO's, or a table with a column of boxes."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from orrery.data.rows.label_notes import label_notes
from orrery.data.sources import BatchRequest, Examples, register
from orrery.data.sources._pictures import AugmentSettings, PictureSource, examples_of_pictures, pictures_read
from orrery.data.sources._rows import RowsSettings, divided, unseen
from orrery.errors import DataError, UsageError

if TYPE_CHECKING:
    from torch import Tensor

    from orrery.data.rows.pictures import LabelledPicture


class BoxesSettings(RowsSettings):
    """Which pictures with their boxes, and how they are changed in training.

    ``train`` and ``val`` are each a file of annotations as COCO's, a table of files and boxes, a set that is made here,
    or a folder as Pascal VOC, YOLO or LabelMe have them; ``pictures`` is the folder of the pictures of a COCO file,
    where they do not lie beside it.
    """

    kind: Literal["boxes"] = "boxes"
    pictures: str | None = None
    augment: AugmentSettings = AugmentSettings()


@register
class BoxesSource(PictureSource):
    """Pictures and things; ``boxes`` [B, N, 4] in shares of the sides, ``classes`` [B, N], -100 where there is none.

    A box is its middle, its width and its height. Crowds are not learned.
    """

    Settings = BoxesSettings
    gives = ("images", "boxes", "classes")
    must_be_read = ("boxes", "classes")

    @classmethod
    def read(cls, settings: BoxesSettings) -> "BoxesSource":
        """Read the rows; pictures are decoded when batches are asked for.

        Raises:
            DataError: there is none, no picture has a thing, or a thing held back has a label of its own.
        """
        from orrery.data.rows.boxes import read_boxed

        def read(source: str) -> Any:
            return read_boxed(source, settings.pictures, settings.skip_bad)

        train, others = divided(settings, read, lambda rows, every: [labels_of(row) for row in rows])
        found = cls(train, others, settings.augment)
        if not (known := found.labels):
            raise DataError(f"{settings.train}: no picture has a box", "check the annotations")
        for row in others:
            if unknown := [label for label in labels_of(row) if label not in known]:
                raise unseen(row.where, unknown[0], known, settings)
        return found

    @property
    def labels(self) -> Mapping[str, int]:
        """How often each label occurs in training."""
        return _counted(self.train)

    def remarks(self) -> Sequence[str]:
        """Say how often each label occurs, and what stands on both sides or on one alone."""
        return [*label_notes(self.labels, _counted(self.held_back), "things", "mend the file"), *super().remarks()]

    def examples(self, request: BatchRequest) -> Examples:
        """Decode the pictures, cut them to the model's size, and make batches.

        Raises:
            DataError: a file is damaged, or a box lies outside of its picture.
            UsageError: the model reads no pictures, or crops them.
        """
        preparation, _ = pictures_read(request)
        if preparation.crop is not None:
            raise UsageError(
                "the model's pictures are cropped, and boxes would not be whole", "set do_center_crop: false"
            )
        numbers = {name: number for number, name in enumerate(request.labels or self.labels)}
        sides = (self.train, self.held_back)
        return examples_of_pictures(request, sides, self.augment, lambda rows: fields_of(rows, numbers), follow)


def labels_of(row: "LabelledPicture") -> tuple[str, ...]:
    """Return the labels of a picture's things, each once."""
    return tuple(dict.fromkeys(thing.label for thing in row.target if not thing.crowd))


def _counted(rows: "Iterable[LabelledPicture]") -> Mapping[str, int]:
    from orrery.data.rows.labelled import counted

    return counted([tuple(thing.label for thing in row.target if not thing.crowd) for row in rows])


def fields_of(rows: "Sequence[LabelledPicture]", numbers: Mapping[str, int]) -> "dict[str, Tensor]":
    """Return the boxes and classes of rows, filled up to as many as the fullest has.

    Raises:
        DataError: a box lies outside of its picture.
    """
    import torch

    from orrery.data.rows.things import inside
    from orrery.nn.cross_entropy import IGNORED

    found = []
    for row in rows:
        high, wide = row.pixels().shape[1:]
        things = [thing for thing in row.target if not thing.crowd]
        found.append([(numbers[thing.label], inside(row.where, thing, high, wide)) for thing in things])
    most = max(1, *map(len, found))
    boxes, classes = torch.zeros(len(rows), most, 4), torch.full((len(rows), most), IGNORED)
    for number, things in enumerate(found):
        for place, (label, box) in enumerate(things):
            boxes[number, place], classes[number, place] = torch.tensor(box), label
    return {"boxes": boxes, "classes": classes}


def follow(fields: "Mapping[str, Tensor]", maps: "Tensor") -> "Mapping[str, Tensor]":
    """Return the things as the pictures' maps move them: what can hardly be seen any more is nothing."""
    from orrery.data.pictures.augmenting import LEAST, moved_boxes
    from orrery.nn.cross_entropy import IGNORED

    boxes, seen = moved_boxes(fields["boxes"], maps)
    gone = (seen < LEAST) | (fields["classes"] == IGNORED)
    return {
        **fields,
        "boxes": boxes.masked_fill(gone[..., None], 0.0),
        "classes": fields["classes"].masked_fill(gone, IGNORED),
    }
