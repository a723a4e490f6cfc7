"""Coverage: how much of its source an answer has looked at, by which beams are ranked."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, final

import torch
from jaxtyping import Float
from torch import Tensor

from orrery.errors import UsageError
from orrery.nn.attention.kernels import eager
from orrery.nn.context import Execution

LEAST = 1e-9
"""Attention that counts as none: its logarithm stays finite."""


class SearchWatch(ABC):
    """How a search calls its model, and what it learns beside the logits."""

    @abstractmethod
    def start(self, ids_BL: Tensor, capacity: int, lengths: Sequence[int] | None) -> tuple[Tensor, Any]:
        """Start the model."""

    @abstractmethod
    def step(self, tokens_NT: Tensor, session: Any, parents: Sequence[int]) -> Tensor:
        """Take a step, each row the continuation of ``parents[row]``."""

    @abstractmethod
    def added(self, source: int, rows: slice) -> list[float] | None:
        """Return what is added to the scores of the rows that answer this source."""


@final
class Unwatched(SearchWatch):
    """Nothing but the logits."""

    def __init__(self, model: Any) -> None:
        self._model = model

    def start(self, ids_BL: Tensor, capacity: int, lengths: Sequence[int] | None) -> tuple[Tensor, Any]:
        """Start the model."""
        started: tuple[Tensor, Any] = self._model.start(ids_BL, capacity, lengths)
        return started

    def step(self, tokens_NT: Tensor, session: Any, parents: Sequence[int]) -> Tensor:
        """Take a step."""
        logits: Tensor = self._model.step(tokens_NT, session)
        return logits

    def added(self, source: int, rows: slice) -> list[float] | None:
        """Return that nothing is."""
        return None


@final
class Coverage(SearchWatch):
    """``beta sum_i log min(sum_j p_ij, 1)``, where ``p_ij`` is what step ``j`` gave to source token ``i``.

    Wu et al. 2016, equation 14: added to the score of an answer that has ended, so that one which leaves a part of the
    source out ranks below one that does not. ``p`` is the mean over all heads that look at the source. The eager kernel
    computes it: the fused one has no patterns.

    Args:
        model: an encoder-decoder with attention.
        beta: how much it counts; the paper's systems used 0.2.
        lengths: tokens of each source.

    Raises:
        UsageError: ``beta`` is out of range; later: the model looks at no source.
    """

    def __init__(self, model: Any, beta: float, lengths: Sequence[int]) -> None:
        if not 0 <= beta <= 100:
            raise UsageError(f"coverage_penalty = {beta} is not possible", "it must be from 0 to 100")
        self._model, self._beta, self._lengths = model, beta, tuple(lengths)
        self._execution = Execution(eager, taps=self._notice)
        self._patterns: list[Tensor] = []
        self._looked_NS = torch.empty(0, 0)

    def start(self, ids_BL: Tensor, capacity: int, lengths: Sequence[int] | None) -> tuple[Tensor, Any]:
        """Start the model."""
        logits_NV, session = self._model.start(ids_BL, capacity, lengths, execution=self._execution)
        self._looked_NS = self._seen()
        return logits_NV, session

    def step(self, tokens_NT: Tensor, session: Any, parents: Sequence[int]) -> Tensor:
        """Take a step, each row the continuation of ``parents[row]``."""
        logits_NTV: Tensor = self._model.step(tokens_NT, session, execution=self._execution)
        self._looked_NS = self._looked_NS[torch.tensor(parents, device=self._looked_NS.device)] + self._seen()
        return logits_NTV

    def added(self, source: int, rows: slice) -> list[float]:
        """Return what is added to the scores of the rows that answer this source."""
        looked_NS = self._looked_NS[rows]
        # What stands before the words in the encoder states is the last states of a recurrent reader.
        begin = looked_NS.shape[1] - max(self._lengths)
        own_NS: Float[Tensor, "N S"] = looked_NS[:, begin : begin + self._lengths[source]]
        bonus: list[float] = (self._beta * own_NS.double().clamp(LEAST, 1.0).log().sum(1)).tolist()
        return bonus

    def _notice(self, key: str, value: Tensor) -> Tensor:
        if key.endswith("cross.pattern"):
            self._patterns.append(value[:, :, -1].mean(1))
        return value

    def _seen(self) -> Float[Tensor, "N S"]:
        """Return what the last call looked at."""
        if not self._patterns:
            raise UsageError("this model looks at no source", "coverage_penalty serves encoder-decoders with attention")
        seen_NS, self._patterns = torch.stack(self._patterns).mean(0), []
        return seen_NS
