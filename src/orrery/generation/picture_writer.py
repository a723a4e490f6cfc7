"""A model that writes beside pictures, as search, sampling and the engine know a model: its prompts are numbers."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Any, final
from weakref import WeakValueDictionary

import torch
from jaxtyping import Float, Int
from torch import Tensor


@final
class PictureWriter:
    """The same model, whose prompts name pictures: the row ``[3]`` is the picture that is kept under 3.

    What answers many prompts at once handles rows of ids alone, and so it does not have to know what a prompt means.

    Args:
        model: a model that reads pictures and writes; its device and dtype are those of the pictures.
        pictures: by their numbers, each as the model reads it; whoever calls keeps them for as long as they are read.
    """

    def __init__(self, model: Any, pictures: Mapping[int, Float[Tensor, "channels rows columns"]]) -> None:
        self._model, self._pictures = model, pictures

    @property
    def first_token(self) -> int | None:
        """Return the token that every row begins with."""
        found: int | None = self._model.first_token
        return found

    @property
    def reads_at_once(self) -> bool:
        """Return whether a prompt has to be read in one call."""
        return bool(self._model.reads_at_once)

    def start(self, source: Int[Tensor, "B 1"], capacity: int, lengths: None = None, **how: Any) -> tuple[Tensor, Any]:
        """Read the pictures of these numbers, as the model's own ``start`` does."""
        images = torch.stack([self._pictures[number] for number in source[:, 0].tolist()])
        logits_BV, session = self._model.start(images, capacity, **how)
        return logits_BV, session

    def step(self, tokens: Tensor, session: Any, *args: Any, **how: Any) -> Tensor:
        """Write into a session, as the model's own ``step`` does."""
        logits_BNV: Tensor = self._model.step(tokens, session, *args, **how)
        return logits_BNV


@final
class PictureRow(Sequence[int]):
    """The prompt that names a picture: a row of its number, with the picture itself.

    Args:
        number: of the picture.
        image: as the model reads it.
        places: the vectors that the model makes of it.
        address: its content as a text, as it came.
    """

    def __init__(
        self, number: int, image: Float[Tensor, "channels rows columns"], places: int = 1, address: str = ""
    ) -> None:
        self.image, self.places, self.address = image, places, address
        self._ids = (number,)

    def __getitem__(self, place: Any) -> Any:
        return self._ids[place]

    def __len__(self) -> int:
        return 1


@final
class HeldPictures(Mapping[int, Tensor]):
    """Pictures by their numbers, each kept for as long as anybody keeps its row."""

    def __init__(self) -> None:
        self._rows: WeakValueDictionary[int, PictureRow] = WeakValueDictionary()
        self._numbers = count()

    def row(self, image: Float[Tensor, "channels rows columns"], places: int = 1, address: str = "") -> PictureRow:
        """Return the row of one more picture; arguments as of ``PictureRow``."""
        found = PictureRow(next(self._numbers), image, places, address)
        self._rows[found[0]] = found
        return found

    def __getitem__(self, number: int) -> Float[Tensor, "channels rows columns"]:
        return self._rows[number].image

    def __iter__(self) -> Iterator[int]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)
