"""Continuing texts: drawing tokens one after another, with what the model's files say where the caller says nothing."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from orrery.errors import UsageError
from orrery.generation.generate import Generation, Limits
from orrery.generation.generate import generate as write_tokens
from orrery.generation.samplers import sampler
from orrery.generation.search import LengthPenalty, refuse_with_beams
from orrery.language_model.arguments import strings_of
from orrery.language_model.search import search
from orrery.language_model.stored import device_of, reads_apart, tokenizer_of, vocabulary, wishes, writer
from orrery.language_model.texts import Truncate, limits_of, prompts
from orrery.nn.embeddings import check_ids
from orrery.reading.read import Stored

LONGEST_ANSWER = 64
"""Tokens of an answer where neither the caller nor the model's files name a number."""


def generate(
    stored: Stored,
    text: str,
    drawing: Mapping[str, float | int | None],
    *,
    max_new_tokens: int | None,
    num_beams: int | None,
    length_penalty: float | int | None,
    stop: str | Sequence[str],
    seed: int,
    stream: Callable[[str], None] | None,
    truncate: Truncate,
) -> str:
    """Return a continuation of ``text``; ``drawing`` has the settings of drawing, see ``LanguageModel.generate``."""
    given = {key: value for key, value in drawing.items() if value is not None}
    files = wishes(stored)
    beams = (1 if given or stop or stream else files.beams) if num_beams is None else num_beams
    if beams < 1:
        raise UsageError(f"num_beams = {beams} is not possible", "it must be at least 1, which is no search")
    longest = _longest(stored, text) if max_new_tokens is None else max_new_tokens
    if beams > 1:
        drawn = files.sampling["temperature"] if num_beams is None else 0
        refuse_with_beams(**given, stop=stop, stream=stream, do_sample=drawn)
        penalty = files.penalty if length_penalty is None else LengthPenalty(length_penalty)
        return search(stored, [text], beams, penalty, 1, longest, truncate)[0][0].text
    usual = files.sampling if drawing["temperature"] is None else {"temperature": 0}
    show = None if stream is None else lambda row, piece: stream(piece)
    limits = limits_of(stored, longest, strings_of(stop))
    return continued(
        stored, lambda: prompts(stored, [text], truncate, longest), limits, seed, show, {**usual, **given}
    )[0].text


def continued(
    stored: Stored,
    rows_of: Callable[[], list[list[int]]],
    limits: Limits,
    seed: int | Sequence[int],
    show: Callable[[int, str], None] | None,
    sampling: Mapping[str, Any],
) -> list[Generation]:
    """Continue rows of ids, which are made only once the model and the settings are known to serve."""
    if sampling.get("repetition_penalty") is None:
        sampling = {**sampling, "repetition_penalty": wishes(stored).sampling["repetition_penalty"]}
    model, tokenizer = writer(stored), tokenizer_of(stored)
    chosen = sampler(vocabulary=tokenizer.size, **sampling)
    rows = rows_of()
    check_ids(torch.tensor([id for row in rows for id in row], dtype=torch.long), vocabulary(stored))
    return write_tokens(model, rows, tokenizer, limits, sampler=chosen, seed=seed, show=show, device=device_of(stored))


def _longest(stored: Stored, text: str) -> int:
    """Return the most tokens of an answer where the caller names none."""
    read = 1 if reads_apart(stored) else max(1, len(tokenizer_of(stored).encode(text)))
    return wishes(stored).longest(read, LONGEST_ANSWER)
