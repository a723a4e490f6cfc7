"""Speculative decoding: several tokens guessed at little cost, and judged by the model in one step."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import pad

from orrery.errors import UsageError
from orrery.generation.answer_text import AnswerText
from orrery.generation.drafts import Draft, Guess
from orrery.generation.filters import History
from orrery.generation.generate import beginnings, check_prompts, generators
from orrery.generation.next_token import Choice, write
from orrery.generation.reading import DraftSession
from orrery.generation.row import Generation, GenerationRow, Limits
from orrery.generation.samplers import GREEDY, Sampler, draw
from orrery.models.protocols import DecodingModel
from orrery.text.streaming import StreamDecoder
from orrery.text.tokenizer import Tokenizer

APART = 0x5DEECE66D
"""What is added to the seed for the numbers of a draft: they must not be those by which its guesses are judged."""


@dataclass(frozen=True)
class Speculation:
    """An answer, and what the guesses were worth.

    Attributes:
        answer: drawn from the model's own distribution.
        steps: of the model, the reading of the prompt among them.
        proposed: tokens that were guessed.
        accepted: guesses that the model confirmed.
    """

    answer: Generation
    steps: int
    proposed: int
    accepted: int


@torch.no_grad()
def speculate(
    model: DecodingModel,
    prompt: Sequence[int],
    tokenizer: Tokenizer,
    limits: Limits,
    draft: Draft,
    *,
    count: int = 5,
    sampler: Sampler = GREEDY,
    seed: int = 1337,
    show: Callable[[str], None] | None = None,
    device: torch.device | None = None,
) -> Speculation:
    """Return an answer as the model's own distribution gives it, in fewer steps of the model.

    The model reads its last token and the guesses in one step. A guess ``x`` that a draft drew from ``q`` is accepted
    with probability ``min(1, p(x) / q(x))``; the first that is not is replaced by a draw from ``max(p - q, 0)``, scaled
    to sum to one, and ends the round. Then the answer has the distribution ``p``, whatever ``q`` is (Leviathan et al.
    2023, algorithm 1; Chen et al. 2023). A guess that was not drawn holds where the model draws the same token.

    Greedy answers, and all that are guessed by ``PromptLookup``, are those of ``generate`` with the same seed, token by
    token.

    Args:
        model: what writes; dropout should be off.
        prompt: token ids; of an encoder-decoder the source.
        tokenizer: turns the answer into text.
        limits: when the answer ends.
        draft: what guesses.
        count: guesses a step.
        sampler: how a token is chosen.
        seed: of the draws.
        show: called with each piece of text as soon as it is certain.
        device: where the model is.

    Raises:
        UsageError: an empty prompt, one longer than the context, or fewer than one guess.
        RunError: the model's logits are not numbers.
    """
    check_prompts([prompt], limits)
    if count < 1:
        raise UsageError(f"{count} guesses a step", "give at least 1")
    began, own, apart = perf_counter(), *generators([seed, (seed + APART) % 2**63], 2)
    reading = DraftSession(model, prompt, limits.context, device)
    begun = beginnings(model, [prompt])[0]
    row = GenerationRow(begun, reading.room, AnswerText(StreamDecoder(tokenizer), limits.stop, show), limits, began)
    judge = _Judge(sampler, History.of([begun], reading.first_V[None], window=sampler.window), own)
    logits_NV, guesses, steps, proposed = reading.first_V[None], list[Guess](), 1, 0
    while True:
        for logits_V, guess in zip(logits_NV, [*guesses, None], strict=True):
            judge.guess = guess
            if not write([row], logits_V[None], judge):
                return Speculation(row.result(), steps, proposed, judge.accepted)
            if not judge.count(row.ids[-1]):
                break
        reading.go_back(len(row.ids) - 1)
        most = max(0, min(count, reading.room - 1, limits.max_new_tokens - len(row.ids) - 1))
        guesses = draft.propose(prompt, row.ids, most, sampler, apart)
        reading.mark(1 + len(guesses))
        logits_NV = reading.read([row.ids[-1], *(guess.token for guess in guesses)])
        steps, proposed = steps + 1, proposed + len(guesses)


@final
class _Judge(Choice):
    """The model's own choice at a place for which a token may have been guessed."""

    def __init__(self, sampler: Sampler, history: History, draws: torch.Generator) -> None:
        self._sampler, self._history, self._draws = sampler, history, draws
        self.guess: Guess | None = None
        self.accepted = 0
        self._held = False

    def pick(self, places: Sequence[int], allowed_NV: Float[Tensor, "N V"]) -> list[int]:
        """Return the guess where it is accepted, else another token."""
        filtered_1V = self._sampler.filtered(allowed_NV, self._history)
        token, self._held = judged(filtered_1V, self.guess, self._sampler, self._draws)
        self.accepted += self._held
        return [token]

    def count(self, token: int) -> bool:
        """Count a token that was taken; return whether it was the guess."""
        self._history.add(torch.tensor([token], device=self._history.written_BV.device))
        return self._held


def judged(
    logits_1V: Float[Tensor, "1 V"], guess: Guess | None, sampler: Sampler, draws: torch.Generator
) -> tuple[int, bool]:
    """Return the token of a place, and whether it is the guess, which is accepted."""
    if guess is None or guess.q_V is None:
        token = int(sampler.pick(logits_1V, [draws]))
        return token, guess is not None and token == guess.token
    p_V = logits_1V[0].double().softmax(-1)
    q_V = pad(guess.q_V.to(p_V.device), (0, len(p_V) - len(guess.q_V)))  # vocabularies may be padded differently
    p, q = (float(each_V[guess.token]) if guess.token < len(p_V) else 0.0 for each_V in (p_V, q_V))
    if float(torch.rand((), dtype=torch.float64, generator=draws)) * q < p:
        return guess.token, True
    rest_V = (p_V - q_V).clamp_min(0.0)
    rest_V = rest_V if float(rest_V.sum()) > 0 else p_V  # equal but for the last bits
    return int(draw(rest_V.log()[None], [draws])), False
