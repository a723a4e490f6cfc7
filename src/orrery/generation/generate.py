"""The decoding loop: prompts in, answers out, over ``start`` and ``step`` alone."""

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import final

import torch
from torch import Tensor

from orrery.errors import UsageError
from orrery.generation.answer_text import AnswerText
from orrery.generation.filters import History
from orrery.generation.next_token import Choice, write
from orrery.generation.row import Generation, GenerationRow, Limits
from orrery.generation.samplers import GREEDY, Sampler
from orrery.models.protocols import DecodingModel
from orrery.text.streaming import StreamDecoder
from orrery.text.tokenizer import Tokenizer


@torch.no_grad()
def generate(
    model: DecodingModel,
    prompts: Sequence[Sequence[int]],
    tokenizer: Tokenizer,
    limits: Limits,
    *,
    sampler: Sampler = GREEDY,
    seed: int | Sequence[int] = 1337,
    show: Callable[[int, str], None] | None = None,
    device: torch.device | None = None,
) -> list[Generation]:
    """Continue every prompt until it ends, all of them as one batch from which finished rows drop out.

    A row's tokens depend on its own prompt and seed alone, not on its neighbours.

    Args:
        model: what writes; dropout should be off (``model.eval()``).
        prompts: token ids; lengths may differ.
        tokenizer: turns the answers into text.
        limits: when an answer ends.
        sampler: how a token is chosen.
        seed: of the draws: one for each row, or one number to which the row's number is added.
        show: called with the row's number and each piece of text as soon as it is certain.
        device: where the model is.

    Raises:
        UsageError: an empty prompt, one longer than the context, or a number of seeds that does not fit.
        RunError: the model's logits are not numbers.
    """
    check_prompts(prompts, limits)
    began = perf_counter()
    draws = generators(seed, len(prompts))
    ids_BL, lengths = padded(prompts, device)
    logits_BV, session = model.start(ids_BL, limits.context, lengths)
    texts = (AnswerText(StreamDecoder(tokenizer), limits.stop, _bound(show, row)) for row in range(len(prompts)))
    taken = session.lengths  # a decoder's row begins with the prompt, an encoder-decoder's with one token
    begun = beginnings(model, prompts)
    rows = [
        GenerationRow(*own, limits, began)
        for own in zip(begun, [limits.context - n for n in taken], texts, strict=True)
    ]
    choice = _Sampled(sampler, History.of(begun, logits_BV, window=sampler.window), draws)
    live = rows
    while going := write(live, logits_BV, choice):
        tokens_B = choice.tokens_B
        if len(going) < len(live):
            tokens_B, session = tokens_B[torch.tensor(going, device=tokens_B.device)], session.select(going)
            live = [live[place] for place in going]
        choice.keep(going)
        logits_BV = model.step(tokens_B[:, None], session)[:, -1]
    return [row.result() for row in rows]


@final
class _Sampled(Choice):
    """What a sampler draws for each row of a batch, each with its own random numbers."""

    def __init__(self, sampler: Sampler, history: History, draws: list[torch.Generator]) -> None:
        self._sampler, self._history, self._draws = sampler, history, draws
        self.tokens_B = torch.empty(0, dtype=torch.long)

    def pick(self, places: Sequence[int], allowed_NV: Tensor) -> list[int]:
        """Return the tokens; ``tokens_B`` are the same on the device."""
        self.tokens_B = self._sampler(allowed_NV, self._history, self._draws)
        tokens: list[int] = self.tokens_B.tolist()
        return tokens

    def keep(self, going: Sequence[int]) -> None:
        """Count the tokens, and let go of the rows that have ended."""
        self._history.add(self.tokens_B)
        if len(going) < len(self._draws):
            self._history = self._history.select(going)
            self._draws = [self._draws[place] for place in going]


def beginnings(model: DecodingModel, prompts: Sequence[Sequence[int]]) -> Sequence[Sequence[int]]:
    """Return what the rows hold that a model writes into: the prompts, or an encoder-decoder's start token."""
    return prompts if model.first_token is None else [[model.first_token]] * len(prompts)


def check_prompts(prompts: Sequence[Sequence[int]], limits: Limits) -> None:
    """Refuse what cannot be continued.

    Raises:
        UsageError: no prompts, an empty one, one longer than the context, or nothing to write.
    """
    if limits.max_new_tokens < 1:
        raise UsageError(f"max_new_tokens = {limits.max_new_tokens} is not possible", "it must be at least 1")
    if not prompts:
        raise UsageError("no prompts", "give at least one")
    for row, prompt in enumerate(prompts):
        if not prompt:
            raise UsageError(f"prompt {row} is empty, and without a token there is no next one", "give it a token")
        if len(prompt) > limits.context:
            raise too_long(len(prompt), limits.context)


def too_long(tokens: int, context: int) -> UsageError:
    """Return the error of a text longer than the context."""
    return UsageError(
        f"a text of {tokens:,} tokens is longer than this model's context of {context:,}",
        'shorten it; `truncate="left"` cuts its beginning',
    )


def generators(seed: int | Sequence[int], rows: int) -> list[torch.Generator]:
    """Return each row's own source of random numbers.

    Raises:
        UsageError: a number of seeds that does not fit, or one that is none.
    """
    seeds = [seed + row for row in range(rows)] if isinstance(seed, int) else list(seed)
    if len(seeds) != rows:
        raise UsageError(f"{len(seeds)} seeds for {rows} prompts", "give one number, or one for each prompt")
    if not all(type(seed) is int and 0 <= seed < 2**63 for seed in seeds):
        raise UsageError(f"seed = {str(seed)[:60]} is not possible", "it must be at least 0 and below 2**63")
    return [torch.Generator().manual_seed(number) for number in seeds]


def padded(prompts: Sequence[Sequence[int]], device: torch.device | None) -> tuple[Tensor, list[int] | None]:
    """Return the prompts as right-padded rows, and their lengths where these differ."""
    lengths = [len(prompt) for prompt in prompts]
    ids_BL = torch.zeros(len(prompts), max(lengths), dtype=torch.long)
    for row, prompt in enumerate(prompts):
        ids_BL[row, : len(prompt)] = torch.tensor(prompt)
    ragged = min(lengths) < max(lengths)
    return ids_BL.to(device), lengths if ragged else None


def _bound(show: Callable[[int, str], None] | None, row: int) -> Callable[[str], None] | None:
    return None if show is None else lambda piece: show(row, piece)
