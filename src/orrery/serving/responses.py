"""The answers that were given last, so that their insides can be looked at afterwards."""

import re
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from orrery.generation.picture_writer import PictureRow
from orrery.generation.requests import Answering
from orrery.serving.errors import ApiError

MOST = 256
"""Responses that are remembered: the ids of their tokens alone."""
MOST_TOKENS = 1 << 20
"""Tokens of all of them together, prompts and answers: some tens of megabytes."""


@dataclass(frozen=True)
class ResponseInputs:
    """What one answer needs to be computed again.

    Attributes:
        prompt: the ids that were read.
        picture: the picture that was read in their place, as its content.
        written: those of the answer.
        log_probabilities: as they were served, one for each token of the answer; empty where nobody asked for them.
        adapter: the adapter that answered, if one did.
    """

    prompt: Sequence[int]
    written: Sequence[int]
    log_probabilities: Sequence[float]
    adapter: str | None
    picture: str = ""

    @property
    def tokens(self) -> int:
        """How many tokens are remembered."""
        return len(self.prompt) + len(self.written) + len(self.picture) // 16

    @classmethod
    def of(cls, answering: Answering) -> "ResponseInputs":
        """Return what is remembered of an answer that has ended."""
        scores = [score.log_probability for score in answering.scores]
        known_scores = [score for score in scores if score is not None]
        request = answering.request
        seen = request.prompt.address if isinstance(request.prompt, PictureRow) else ""
        return cls(tuple(request.prompt), tuple(answering.written), tuple(known_scores), request.adapter, seen)


@final
class Responses:
    """The last responses by their ids; each holds its answers by number, as they end."""

    def __init__(self) -> None:
        self._held: OrderedDict[str, dict[int, ResponseInputs]] = OrderedDict()
        self._tokens = 0

    def begin(self, id: str) -> None:
        """Make room for a response, whose answers come as they end."""
        self._held[id] = {}
        self._let_go()

    def add(self, id: str, index: int, answer: ResponseInputs) -> None:
        """Remember an answer, unless so many responses have begun since that its own is forgotten."""
        if id in self._held:
            self._held[id][index] = answer
            self._tokens += answer.tokens
            self._let_go()

    def find(self, id: str, index: int = 0) -> ResponseInputs:
        """Return one answer of a response, whose id may stand behind its kind: ``chatcmpl-...``, ``resp_...``.

        Raises:
            ApiError: it is not remembered, not at its end, or an adapter's.
        """
        answers = self._held.get(re.split("[-_]", id)[-1])
        if answers is None:
            message = (
                f"the response {id[:60]!r} is not remembered; of the last {MOST} those with {MOST_TOKENS} tokens are"
            )
            raise ApiError(404, message, param="response", code="response_not_found")
        if index not in answers:
            message = f"the response {id!r} has no answer {index} that has come to its end"
            raise ApiError(400, message, param="choice")
        if answers[index].adapter is not None:
            message = f"the adapter {answers[index].adapter!r} wrote this answer, and the model alone is looked into"
            raise ApiError(400, message, param="response")
        return answers[index]

    def _let_go(self) -> None:
        """Forget the oldest responses beyond the bounds; the newest stays, however long."""
        while len(self._held) > MOST or (self._tokens > MOST_TOKENS and len(self._held) > 1):
            _, answers = self._held.popitem(last=False)
            self._tokens -= sum(answer.tokens for answer in answers.values())
