"""What is asked of the engine, and what it tells while it answers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor

from orrery.errors import RunError
from orrery.generation.filters import History
from orrery.generation.row import Generation, GenerationRow, Limits
from orrery.generation.samplers import GREEDY, Sampler


class CancelledError(RunError):
    """The request was ended before its answer."""


@dataclass(frozen=True)
class TokenScore:
    """How probable a token was, by the model's own logits, before penalties and temperature.

    Attributes:
        token: its id.
        log_probability: in nats; ``None`` of a first token, which nothing predicts.
        best: the most probable ids at its place with theirs, the best first.
    """

    token: int
    log_probability: float | None
    best: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True)
class Written:
    """What one token brought.

    Attributes:
        token: its id.
        text: what has become certain with it, possibly nothing.
        score: where it was asked for.
    """

    token: int
    text: str
    score: TokenScore | None


@dataclass(frozen=True)
class Request:
    """One prompt and how it is to be continued.

    Attributes:
        prompt: token ids; the source's, of an encoder-decoder.
        limits: when the answer ends; ``max_new_tokens`` of 0 only reads the prompt.
        sampler: how a token is chosen.
        seed: of the draws.
        scores: tell the log probability of each token, and of so many of the most probable ones; ``None`` tells none.
        prompt_scores: tell those of the prompt's tokens too.
        adapter: the name of the adapter that answers; ``None`` is the model itself.
        told: called with each token, on the thread that runs the engine; what it raises ends the answer.
    """

    prompt: Sequence[int]
    limits: Limits
    sampler: Sampler = GREEDY
    seed: int = 1337
    scores: int | None = None
    prompt_scores: bool = False
    adapter: str | None = None
    told: Callable[[Written], None] | None = None


@final
class Answering:
    """A request on its way through the engine.

    Attributes:
        request: what was asked.
        generator: of its draws.
        begun: what its row holds before the answer: the prompt, or an encoder-decoder's start token.
        began: when it was asked, by ``perf_counter``.
        row: the answer so far; nothing before the prompt is read.
        history: which tokens it holds; nothing before a filter asks for it.
        prompt_scores: of the prompt's tokens, where they were asked for.
        scores: of the answer's tokens, where they were asked for.
        error: what ended it other than its own end.
        reused: tokens of the prompt that were found in what the engine had read before.
        late: whether it waits, outside the rows that are written, for a guide that does not know yet what may follow.
    """

    def __init__(self, request: Request, generator: torch.Generator, begun: Sequence[int]) -> None:
        self.request = request
        self.generator = generator
        self.begun = begun
        self.began = perf_counter()
        self.row: GenerationRow | None = None
        self.history: History | None = None
        self.prompt_scores: list[TokenScore] = []
        self.scores: list[TokenScore] = []
        self.error: Exception | None = None
        self.reused = 0
        self.late = False

    @property
    def done(self) -> bool:
        """Whether it has ended, in whatever way."""
        return self.error is not None or (self.row is not None and self.row.finish_reason is not None)

    @property
    def written(self) -> list[int]:
        """The ids of the answer so far."""
        return [] if self.row is None else self.row.ids

    @property
    def most_tokens(self) -> int:
        """The tokens that it may come to hold, prompt and answer together."""
        limits = self.request.limits
        return min(limits.context, len(self.request.prompt) + limits.max_new_tokens)

    def result(self) -> Generation:
        """Return the answer, which has ended.

        Raises:
            Exception: what ended it before its own end.
        """
        if self.error is not None:
            raise self.error
        assert self.row is not None
        return self.row.result()


def scores_of(logits_NV: Float[Tensor, "N V"], tokens: Sequence[int], best: int) -> list[TokenScore]:
    """Return the scores of tokens, each by the logits at its place."""
    logits_NV = logits_NV.to(torch.promote_types(logits_NV.dtype, torch.float32))
    found_NV = logits_NV.log_softmax(-1)
    own = found_NV[range(len(tokens)), list(tokens)].tolist()
    top = found_NV.topk(min(best, found_NV.shape[1]), dim=-1)
    ranked = zip(top.indices.tolist(), top.values.tolist(), strict=True)
    return [
        TokenScore(token, score, tuple(zip(ids, values, strict=True)))
        for token, score, (ids, values) in zip(tokens, own, ranked, strict=True)
    ]
