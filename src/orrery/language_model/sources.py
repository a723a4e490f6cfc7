"""What a model is to write about: prompts as rows of ids, or pictures, for every way of writing alike."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, final

import torch
from jaxtyping import Float
from torch import Tensor

from orrery.errors import UsageError
from orrery.exchange.reading.read import Stored
from orrery.exchange.stored import vocabulary
from orrery.generation.picture_writer import PictureWriter
from orrery.language_model.pictures import Picture, images_of, reads_pictures
from orrery.language_model.texts import Text, Truncate, prompts
from orrery.nn.embeddings import check_ids

Source: TypeAlias = Text | Picture
"""A text or its ids; for a model that reads pictures, a picture."""


@final
@dataclass(frozen=True)
class Sources:
    """What is read before answers are written.

    Attributes:
        rows: the ids of each prompt, or the number of its picture.
        pictures: by their numbers.
    """

    rows: list[list[int]]
    pictures: Mapping[int, Float[Tensor, "channels rows columns"]] = field(default_factory=dict)

    def before(self, model: Any) -> Any:
        """Return what writes, with the pictures before it where there are any."""
        return PictureWriter(model, self.pictures) if self.pictures else model

    def some(self, places: Sequence[int]) -> "Sources":
        """Return those at some places, which may repeat."""
        return replace(self, rows=[self.rows[place] for place in places])


def sources(stored: Stored, given: Source | Sequence[Source], truncate: Truncate, max_new_tokens: int) -> Sources:
    """Return what a model is asked to write about; errors as in ``prompt`` of texts and ``images_of`` of pictures."""
    if reads_pictures(stored) is None:
        return Sources(prompts(stored, given, truncate, max_new_tokens))  # type: ignore[arg-type]
    return pictures(stored, given)


def one_source(stored: Stored, given: Source, truncate: Truncate, max_new_tokens: int) -> Sources:
    """Return the one thing that a model is asked to write about.

    Raises:
        UsageError: several pictures, and as ``sources``.
    """
    found = sources(stored, [given], truncate, max_new_tokens)
    if len(found.rows) != 1:
        raise UsageError(f"{len(found.rows)} pictures, where one is read", "give them to generations or to search")
    return found


def of_ids(stored: Stored, rows: Sequence[Sequence[int]]) -> Sources:
    """Return rows of ids as they are.

    Raises:
        DataError: one is outside the vocabulary.
    """
    check_ids(torch.tensor([id for row in rows for id in row], dtype=torch.long), vocabulary(stored))
    return Sources([list(row) for row in rows])


def pictures(stored: Stored, given: Any) -> Sources:
    """Return a picture or several, as the model reads them; errors as in ``images_of``.

    Raises:
        UsageError: there is none.
    """
    images = [image for one in several_pictures(given) for image in images_of(stored, one)]
    if not images:
        raise UsageError("no pictures", "give at least one")
    return Sources([[number] for number in range(len(images))], dict(enumerate(images)))


def several_pictures(given: Any) -> Sequence[Any]:
    """Return pictures as a list; a single one, or an array with an axis for several, is one of them."""
    return given if isinstance(given, list | tuple) else [given]
