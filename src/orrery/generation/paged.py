"""A model whose rows hold pages of one pool, whoever starts them."""

from collections.abc import Sequence
from typing import Any, final

from torch import Tensor

from orrery.models.protocols import ChunkedModel
from orrery.nn.cache.kinds import cache_for
from orrery.nn.cache.pages import PagePool


@final
class PagedModel:
    """The same model, every session of which takes the pages of one pool; windows and states have stores of their own.

    Args:
        model: what writes.
        pool: the pages.
    """

    def __init__(self, model: ChunkedModel, pool: PagePool) -> None:
        self._model: Any = model
        self._pool = pool

    @property
    def first_token(self) -> int | None:
        """Return the token that every row begins with, or ``None`` where a row begins with its prompt."""
        token: int | None = self._model.first_token
        return token

    @property
    def reads_at_once(self) -> bool:
        """Return whether a prompt has to be read in one call."""
        return bool(self._model.reads_at_once)

    def start(self, source: Tensor, capacity: int, lengths: Sequence[int] | None = None) -> tuple[Tensor, Any]:
        """Read prompts into pages, as the model's own ``start`` does."""
        cache = cache_for(self._model.stack.masks, len(source), capacity, source.device, self._pool)
        logits_BV, session = self._model.start(source, capacity, lengths, cache=cache)
        return logits_BV, session

    def step(self, tokens: Tensor, session: Any, lengths: Sequence[int] | None = None) -> Tensor:
        """Write into a session, as the model's own ``step`` does."""
        logits_BNV: Tensor = self._model.step(tokens, session, lengths)
        return logits_BNV
