"""Scores that are told with the text of their tokens: what a stop string cuts off has none."""

from collections.abc import Sequence
from typing import final

from orrery.generation.requests import Answering, TokenScore
from orrery.text.streaming import StreamDecoder
from orrery.text.tokenizer import Tokenizer


@final
class HeldScores:
    """The scores of one answer while it is written.

    A token whose text may still be a part of a stop string is told once the text is certain, and never where the
    string was that.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._decoder, self._size = StreamDecoder(tokenizer), tokenizer.size
        self._held: list[tuple[int, TokenScore]] = []
        self._made = self._shown = 0

    def push(self, score: TokenScore | None, text: str) -> list[TokenScore]:
        """Add a token with the text that has become certain; return the scores of all tokens that it shows."""
        if score is not None:
            self._held.append((self._made, score))
            self._made += len(self._decoder.push(score.token)) if score.token < self._size else 0
        self._shown += len(text)
        count = next((n for n, (start, _) in enumerate(self._held) if start >= self._shown), len(self._held))
        shown, self._held = self._held[:count], self._held[count:]
        return [score for _, score in shown]

    def finish(self, reason: str | None) -> list[TokenScore]:
        """Return the rest: nothing behind a stop string."""
        return [] if reason == "stop" else [score for _, score in self._held]


def shown_scores(tokenizer: Tokenizer, answering: Answering) -> Sequence[TokenScore]:
    """Return the scores of the tokens that an answer shows."""
    held, result = HeldScores(tokenizer), answering.result()
    if result.finish_reason != "stop":
        return answering.scores
    for score in answering.scores:
        held.push(score, "")
    return held.push(None, result.text)
