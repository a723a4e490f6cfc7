"""One answer while it grows: its tokens, its text, what may follow, and why it ended."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from time import monotonic, perf_counter
from typing import Literal, final

import torch
from torch import Tensor

from orrery.errors import UsageError
from orrery.generation.answer_text import AnswerText
from orrery.generation.constraints import FREE, Constraints, TokenPlace
from orrery.generation.guides import Begin

FinishReason = Literal["end", "stop", "length", "context"]
"""The end token came; a stop string came; ``max_new_tokens`` are written; the context is full."""


@dataclass(frozen=True)
class Generation:
    """One answer.

    Attributes:
        ids: every token drawn, the end token and those of a stop string among them.
        text: what they say, without the end token, and up to the first stop string.
        finish_reason: why it ended.
        tokens_per_second: its tokens over the time from the call to its last one, the prompt's reading included.
    """

    ids: list[int]
    text: str
    finish_reason: FinishReason
    tokens_per_second: float


@dataclass(frozen=True)
class Limits:
    """When an answer ends.

    Attributes:
        max_new_tokens: the most tokens of one answer.
        context: the most tokens that the model reads in one row, prompt and answer together.
        end: the ids that end a text.
        stop: the strings that end an answer and do not belong to it.
        constraints: which tokens may be chosen at all.
        guides: what begins each answer's own guides, which say what may follow its text.
    """

    max_new_tokens: int
    context: int
    end: Collection[int] = ()
    stop: Sequence[str] = ()
    constraints: Constraints = FREE
    guides: tuple[Begin, ...] = ()


@final
class GenerationRow:
    """One answer while it grows.

    Args:
        before: what stands in its row before it: the prompt, or an encoder-decoder's start token.
        remaining: how many more tokens the model can read behind what it has read.
        writer: makes text of the tokens.
        limits: when the answer ends.
        began: when it was asked for, by ``perf_counter``.
    """

    def __init__(self, before: Sequence[int], remaining: int, writer: AnswerText, limits: Limits, began: float) -> None:
        self.before = before
        self.remaining = remaining
        self.writer = writer
        self.limits = limits
        self.guides = [begin() for begin in limits.guides]
        self.ids: list[int] = []
        self.finish_reason: FinishReason | None = None
        self.began = began
        self.seconds = 0.0

    def take(self, token: int) -> bool:
        """Add a token; return whether the answer goes on."""
        self.ids.append(token)
        for guide in self.guides:
            guide.push(token)
        if token in self.limits.end:
            self.finish_reason = "end"
        elif self.writer.push(token):
            self.finish_reason = "stop"
        elif len(self.ids) >= self.limits.max_new_tokens:
            self.finish_reason = "length"
        elif len(self.ids) > self.remaining:  # this token itself can no longer be read
            self.finish_reason = "context"
        return self.goes_on()

    def goes_on(self) -> bool:
        """Return whether the answer goes on; one that a guide knows to be whole ends now."""
        if self.finish_reason is None and any(guide.over for guide in self.guides):
            self.finish_reason = "end"
        if self.finish_reason in ("end", "length", "context") and self.writer.finish():
            self.finish_reason = "stop"
        self.seconds = perf_counter() - self.began
        return self.finish_reason is None

    def ready(self, seconds: float) -> bool:
        """Return whether every guide knows what may follow, after so many seconds at most."""
        until = monotonic() + seconds
        return all(guide.ready(max(0.0, until - monotonic())) for guide in self.guides)

    @property
    def free(self) -> bool:
        """Whether any token may follow."""
        return not self.guides and self.limits.constraints.free

    def allowed(self, logits_V: Tensor) -> Tensor:
        """Return the logits, those of tokens that a constraint or a guide does not allow at minus infinity.

        Raises:
            UsageError: no token is allowed.
        """
        place = TokenPlace(self.before, self.ids, self.limits.max_new_tokens)
        logits_V = self.limits.constraints(logits_V[None], [place])[0]
        for guide in self.guides:
            allowed_V = guide.allowed()
            if allowed_V is not None:
                hidden_V = ~torch.nn.functional.pad(allowed_V, (0, len(logits_V) - len(allowed_V)))
                logits_V = logits_V.masked_fill(hidden_V.to(logits_V.device), float("-inf"))
        if self.guides and bool(logits_V.isneginf().all()):
            raise UsageError(
                "no token may follow what is written: together the demands cannot be met",
                "drop one of the form, the bad words and the settings of generation_config.json",
            )
        return logits_V

    def result(self) -> Generation:
        """Return the answer, which has ended."""
        assert self.finish_reason is not None
        rate = len(self.ids) / max(self.seconds, 1e-9)
        return Generation(self.ids, self.writer.text, self.finish_reason, rate)
