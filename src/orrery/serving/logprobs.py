"""Log probabilities as OpenAI tells them: of completions in four lists, of chats in one list of objects."""

from collections.abc import Sequence
from typing import Any, final

from orrery.generation.requests import TokenScore
from orrery.serving.token_texts import TokenTexts
from orrery.text.streaming import StreamDecoder
from orrery.text.tokenizer import Tokenizer

LEAST = -9999.0
"""Nats that stand for minus infinity, which JSON has not."""


def bounded(score: TokenScore) -> float:
    """Return a token's log probability; 0 for a first one, which nothing predicts."""
    return 0.0 if score.log_probability is None else max(LEAST, score.log_probability)


@final
class CompletionLogprobs:
    """The four lists of a completion, part by part.

    Args:
        texts: how tokens read.
        best: how many of the most probable tokens are told.
        offset: characters that stand before the first of them.
    """

    def __init__(self, texts: TokenTexts, best: int, offset: int) -> None:
        self._texts, self._best, self._offset = texts, best, offset
        self._decoder: StreamDecoder | None = None
        self._added = _empty()

    def add_prompt(self, tokenizer: Tokenizer, scores: Sequence[TokenScore]) -> None:
        """Add the tokens of the prompt; those of the answer begin after them."""
        self.add(tokenizer, scores)
        if self._decoder is not None:
            self._offset += len(self._decoder.finish())
            self._decoder = None

    def add(self, tokenizer: Tokenizer, scores: Sequence[TokenScore]) -> None:
        """Add tokens, those of one text in their order."""
        for score in scores:
            self._decoder = self._decoder or StreamDecoder(tokenizer)
            self._added["tokens"].append(self._texts.text(score.token))
            self._added["token_logprobs"].append(None if score.log_probability is None else bounded(score))
            self._added["top_logprobs"].append(self._top(score))
            self._added["text_offset"].append(self._offset)
            if score.token < tokenizer.size:
                self._offset += len(self._decoder.push(score.token))

    def take(self) -> dict[str, list[Any]]:
        """Return what was added since the last call."""
        added, self._added = self._added, _empty()
        return added

    def _top(self, score: TokenScore) -> dict[str, float] | None:
        """Return the most probable tokens, and the one that stands there."""
        if score.log_probability is None:
            return None
        by_text: dict[str, float] = {}
        for id, value in (*score.best[: self._best], (score.token, score.log_probability)):
            # Of several tokens that read alike the most probable one counts.
            text = self._texts.text(id)
            by_text[text] = max(by_text.get(text, LEAST), value)
        return by_text


def _empty() -> dict[str, list[Any]]:
    return {"tokens": [], "token_logprobs": [], "top_logprobs": [], "text_offset": []}


def of_chat(texts: TokenTexts, scores: Sequence[TokenScore], *, ids: bool = False) -> list[dict[str, Any]]:
    """Return the objects of a chat's tokens, with their ids where these are asked for."""
    return [
        {
            **_one(texts, score.token, bounded(score), ids),
            "top_logprobs": [_one(texts, id, max(LEAST, value), ids) for id, value in score.best],
        }
        for score in scores
    ]


def _one(texts: TokenTexts, id: int, value: float, ids: bool) -> dict[str, Any]:
    entry = {"token": texts.text(id), "logprob": value, "bytes": list(texts.spelling(id))}
    return {**entry, "id": id} if ids else entry
