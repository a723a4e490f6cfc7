"""What a model that sees writes of a picture: ``[{"generated_text": ...}]``."""

from collections.abc import Iterator, Sequence
from typing import Any

from orrery.errors import UsageError
from orrery.language_model import captions
from orrery.language_model.model import LanguageModel
from orrery.tasks._task import register
from orrery.tasks.pipelines._of_pictures import OfPictures
from orrery.tasks.pipelines._picture_rows import PictureRow
from orrery.tasks.pipelines._writing import CaptionSettings, told, written


class ImageToTextSettings(CaptionSettings):
    """How a caption is written: the keys of a generation_config.json; ``return_tensors`` gives ids; ``seed``."""


@register
class ImageToText(OfPictures):
    """A caption of a picture, which a model writes that reads pictures.

    A picture is a path, a ``data:`` address in base64, an array or a picture of Pillow's. Where neither the caller nor
    the model's files say anything, a caption has at most 256 tokens, each the likeliest.

    Transformers 5 has no such task any more; the answers are those of transformers 4.
    """

    kind = "image_to_text"
    verb = "caption"
    route = "/v1/tasks/image-to-text"
    said = "caption"
    fields = ("picture",)
    Settings = ImageToTextSettings

    def __init__(self, lm: LanguageModel, task: str, batch_size: int = 1, **settings: Any) -> None:
        if not self.fits(lm):
            raise UsageError(f"{task} needs a model that reads pictures and writes", captions.NEEDED)
        super().__init__(lm, task, batch_size, **settings)

    @classmethod
    def fits(cls, lm: LanguageModel) -> bool:
        """Say whether the model reads pictures and writes."""
        return captions.writes_captions(lm.stored)

    def ask(self, rows: Sequence[PictureRow], settings: ImageToTextSettings) -> Sequence[list[list[int]]]:
        """Return the ids of the captions of each picture."""
        return written(self.lm, rows, settings, captions.USUAL, self.lm.files_say(self.task))

    def answer(
        self, item: Any, rows: Sequence[Any], found: Sequence[list[list[int]]], settings: ImageToTextSettings
    ) -> list[dict[str, Any]]:
        """Return the captions."""
        return told(self.lm, "generated", found[0], ids=settings.return_tensors)

    def told(self, answer: Any) -> str | list[str]:
        """Return the caption, or a list of several."""
        texts = [one.get("generated_text") or one["generated_token_ids"].tolist() for one in answer or ()]
        return texts[0] if len(texts) == 1 else texts

    def lines(self, item: Any, answer: Any) -> Iterator[str]:
        """Return the caption."""
        told = self.told(answer)
        yield from [told] if isinstance(told, str) else told
