"""Speculative decoding: several tokens guessed at little cost, and judged by the model in one step."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter

import torch

from orrery.errors import UsageError
from orrery.generation.answer_text import AnswerText
from orrery.generation.constraints import Place
from orrery.generation.drafts import Draft
from orrery.generation.filters import History
from orrery.generation.generate import beginnings, check_logits, check_prompts, generators
from orrery.generation.reading import Reading
from orrery.generation.row import Generation, Limits, Row
from orrery.generation.samplers import GREEDY, Sampler
from orrery.models.protocols import DecodingModel
from orrery.text.streaming import StreamDecoder
from orrery.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class Speculation:
    """An answer, and what the guesses were worth.

    Attributes:
        answer: the same as without a draft.
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
    """Return the answer that ``generate`` gives with the same seed, in fewer steps of the model.

    The model reads its last token and the guesses in one step. Then each place draws its token, with the number that
    would have drawn it without a draft; the first that differs from its guess ends the round. So the answer is that of
    plain sampling, token by token, and its distribution the model's, whatever the draft says.

    Differs from Leviathan et al. 2023 and Chen et al. 2023, who accept a guess with probability ``min(1, p / q)`` and
    draw again from what is left: there more guesses of a draft model hold, and each draft gives another answer.

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
    began, (own,) = perf_counter(), generators(seed, 1)
    reading = Reading(model, prompt, limits.context, device)
    row = Row(reading.room, AnswerText(StreamDecoder(tokenizer), limits.stop, show), limits, began)
    begun = beginnings(model, [prompt])[0]
    history = History.of([begun], reading.logits_V[None])
    logits_NV, guesses, steps, proposed, accepted = reading.logits_V[None], list[int](), 1, 0, 0
    while True:
        for place, logits_V in enumerate(logits_NV):
            check_logits(logits_V)
            where = Place(begun, row.ids, limits.max_new_tokens)
            token_1 = sampler(row.guided(limits.constraints(logits_V[None], [where])[0])[None], history, [own])
            held = place < len(guesses) and int(token_1) == guesses[place]
            accepted += held
            if not row.take(int(token_1)):
                return Speculation(row.result(), steps, proposed, accepted)
            history.add(token_1)
            if not held:
                break
        reading.go_back(len(row.ids) - 1)
        most = min(count, reading.room - 1, limits.max_new_tokens - len(row.ids) - 1)
        guesses = draft.propose(prompt, row.ids, most, sampler, _same(own)) if most > 0 else []
        reading.mark(1 + len(guesses))
        logits_NV = reading.read([row.ids[-1], *guesses])
        steps, proposed = steps + 1, proposed + len(guesses)


def _same(draws: torch.Generator) -> torch.Generator:
    """Return a generator that will give the same numbers."""
    copy = torch.Generator()
    copy.set_state(draws.get_state())
    return copy
