"""The answers that were given last, so that their insides can be looked at afterwards."""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

from orrery.generation.requests import Answering
from orrery.serving.errors import ApiError

MOST = 256
"""Responses that are remembered; their ids alone, a few kilobytes each."""


@dataclass(frozen=True)
class Given:
    """What one answer needs to be computed again.

    Attributes:
        prompt: the ids that were read.
        written: those of the answer.
        log_probabilities: as they were served, one for each token of the answer; empty where nobody asked for them.
        adapter: the adapter that answered, if one did.
    """

    prompt: Sequence[int]
    written: Sequence[int]
    log_probabilities: Sequence[float]
    adapter: str | None

    @classmethod
    def of(cls, answering: Answering) -> "Given":
        """Return what is remembered of an answer that has ended."""
        scores = [score.log_probability for score in answering.scores]
        told = [score for score in scores if score is not None]
        request = answering.request
        return cls(tuple(request.prompt), tuple(answering.written), tuple(told), request.adapter)


@final
class Responses:
    """The last responses by their ids; each holds its answers by number, as they end."""

    def __init__(self) -> None:
        self._held: OrderedDict[str, Mapping[int, Given]] = OrderedDict()

    def add(self, id: str, answers: Mapping[int, Given]) -> None:
        """Remember a response; its answers may come later."""
        self._held[id] = answers
        while len(self._held) > MOST:
            self._held.popitem(last=False)

    def find(self, id: str, index: int = 0) -> Given:
        """Return one answer of a response.

        Raises:
            ApiError: it is not remembered, not at its end, or an adapter's.
        """
        if id not in self._held:
            message = f"the response {id[:60]!r} is not remembered; the last {MOST} are"
            raise ApiError(404, message, param="response", code="response_not_found")
        answers = self._held[id]
        if index not in answers:
            message = f"the response {id!r} has no answer {index} that has come to its end"
            raise ApiError(400, message, param="choice")
        if answers[index].adapter is not None:
            message = f"the adapter {answers[index].adapter!r} wrote this answer, and the model alone is looked into"
            raise ApiError(400, message, param="response")
        return answers[index]
