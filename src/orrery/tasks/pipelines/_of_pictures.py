"""What tasks that are asked of pictures share: a picture is one row, and a client sends its content."""

from abc import ABC
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from orrery.tasks._task import Learned
from orrery.tasks.pipelines._picture_rows import picture_row, sent_picture
from orrery.tasks.pipelines._pipeline import Pipeline

if TYPE_CHECKING:
    from orrery.exchange.reading.read import Stored


class OfPictures(Pipeline, ABC):
    """A task whose inputs are pictures: each a path, a ``data:`` address, an array or a picture of Pillow's."""

    def is_many(self, inputs: Any) -> bool:
        """Say whether what is given is a list of pictures, and no single one."""
        return isinstance(inputs, list | tuple)

    @classmethod
    def from_client(cls, item: Any) -> Any:
        """Return a picture that a client has sent."""
        return sent_picture(item)

    def rows(self, item: Any, settings: Any) -> Sequence[Any]:
        """Return the one row of a picture."""
        return [picture_row(self.lm, item)]


class LearnedOfPictures(Learned, OfPictures, ABC):
    """Such a task that a model learns from pictures with their answers."""

    batches = "pictures"

    @classmethod
    def lengths(cls, source: Any, stored: "Stored", most: int) -> tuple[int, list[int]]:
        """Return how many training pictures there are; each has the patches of the model."""
        return len(source.train), [stored.model.spec.context]


class LearnedOfCaptions(Learned, ABC):
    """A task that is learned from pictures with sentences about them."""

    source = "captions"
    batches = "pictures"

    @classmethod
    def texts(cls, source: Any) -> Iterable[tuple[str, ...]]:
        """Return the captions, which rows are as long as."""
        return ((caption,) for row in source.train for caption in row.target)

    @classmethod
    def lengths(cls, source: Any, stored: "Stored", most: int) -> tuple[int, list[int]]:
        """Return how many captions there are, and how many tokens some of them have with their end."""
        rows, lengths = super().lengths(source, stored, most)
        return rows, [length + 1 for length in lengths]
