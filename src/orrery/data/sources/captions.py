"""Pictures with sentences about them: files as COCO's, or a table with a column of captions."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal

from orrery.data.documents import unknown_share
from orrery.data.sources import BatchRequest, Examples, HeldBack, register
from orrery.data.sources._pictures import NAME, AugmentSettings, PictureSource, decoded, pictures_read
from orrery.data.sources._rows import RowsSettings, divided
from orrery.errors import DataError

if TYPE_CHECKING:
    from torch import Tensor

    from orrery.data.rows.pictures import LabelledPicture


class CaptionsSettings(RowsSettings):
    """Which pictures with their captions, and how they are changed in training.

    ``train`` and ``val`` are each a file of annotations as COCO's, a table of files and captions, or a set that is made
    here; ``pictures`` is the folder of the pictures of a COCO file, where they do not lie beside it.
    """

    kind: Literal["captions"] = "captions"
    pictures: str | None = None
    augment: AugmentSettings = AugmentSettings()


@register
class CaptionsSource(PictureSource):
    """Pictures and captions, of which each is an example of its own.

    ``images`` [B, channels, rows, columns]; ``ids`` [B, L], the start token and then the caption; ``targets`` [B, L],
    the caption and then the end token, -100 behind it.
    """

    Settings = CaptionsSettings
    gives = ("images", "ids", "targets")
    must_be_read = ("images",)
    needs_tokenizer = gives_text = True

    @classmethod
    def read(cls, settings: CaptionsSettings) -> "CaptionsSource":
        """Read the rows; pictures are decoded when batches are asked for.

        Raises:
            DataError: there is none, or one has no caption.
        """
        from orrery.data.rows.captions import read_captioned

        def read(source: str) -> Any:
            return read_captioned(source, settings.pictures, settings.skip_bad)

        return cls(*divided(settings, read), settings.augment)

    def texts(self) -> Iterable[str]:
        """Return the captions of the training pictures."""
        return (caption for row in self.train for caption in row.target)

    def examples(self, request: BatchRequest) -> Examples:
        """Decode the pictures, encode the captions, leave out what is too long and say so, and make batches.

        Raises:
            DataError: a file is damaged, or every caption is too long.
            UsageError: the model reads no pictures.
        """
        from orrery.data.batches.pictures import PictureBatches, PicturesInTurn
        from orrery.data.pictures.augmenting import Augmentation

        preparation, _ = pictures_read(request)
        numbers, fields, notes = encoded(request, self.train, "training")
        held_back = None
        if self.held_back:
            others, theirs, more = encoded(request, self.held_back, "validation")
            notes += more
            in_turn = PicturesInTurn(decoded(request, self.held_back), theirs, preparation, request.size, others)
            held_back = HeldBack(in_turn, request.limited(len(in_turn)))
        changes, pixels = Augmentation(**self.augment.model_dump()), decoded(request, self.train)
        batches = PictureBatches(
            pixels, fields, preparation, request.size, request.seed, changes, lambda fields, maps: fields, numbers
        )
        tokens = int((fields["targets"] >= 0).sum())
        return Examples(
            train=batches,
            held_back=held_back,
            tokens={NAME: tokens},
            batch_tokens=round(tokens * request.size / len(numbers)),
            epochs=lambda step: {NAME: step * request.size / len(numbers)},
            notes=notes,
        )


def encoded(
    request: BatchRequest, rows: "Sequence[LabelledPicture]", what: str
) -> "tuple[Tensor, dict[str, Tensor], list[str]]":
    """Return the number of each caption's picture, the captions as ids and targets, and what to say.

    Raises:
        DataError: there is no caption that fits into a row.
    """
    import torch

    from orrery.data.batches.pairs import Ends, pair_batch
    from orrery.data.sources.pairs import without_end

    tokenizer = request.required_tokenizer
    end = tokenizer.special("end")
    said = [(number, caption) for number, row in enumerate(rows) for caption in row.target]
    ids = tokenizer.encode_batch([caption for _, caption in said])
    whole = [without_end(tokenizer, tokenizer.around(row).ids) for row in ids]
    kept = [n for n, row in enumerate(whole) if len(row) < request.length]
    if not kept:
        raise DataError(f"every {what} caption is longer than {request.length:,} tokens", "raise batches.length")
    ends = Ends(end if request.start is None else request.start, end)
    fields = pair_batch([([0], whole[n]) for n in kept], ends)
    out = len(whole) - len(kept)
    notes = [f"{out:,} of {len(whole):,} {what} captions left out: longer than batches.length, {request.length:,}"]
    numbers = torch.tensor([said[n][0] for n in kept])
    unknown = unknown_share(tokenizer, [whole[n] for n in kept])
    return numbers, {name: fields[name] for name in ("ids", "targets")}, [*(notes if out else []), *unknown]
