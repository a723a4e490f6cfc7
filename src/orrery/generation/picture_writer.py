"""A model that writes beside pictures, as search, sampling and the engine know a model: its prompts are numbers."""

from collections.abc import Mapping
from typing import Any, final

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
