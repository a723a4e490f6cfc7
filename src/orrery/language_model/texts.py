"""Texts into the ids that a model takes, when an answer ends, and its ids into text."""

from collections.abc import Sequence
from typing import Literal

import torch

from orrery.errors import UsageError
from orrery.generation.generate import too_long
from orrery.generation.row import Limits
from orrery.language_model.guides import NO_DEMANDS, Demands, guides_of
from orrery.language_model.stored import control_token, ends_of, reads_apart, tokenizer_of, vocabulary, wishes
from orrery.nn.embeddings import check_ids
from orrery.reading.read import Stored

LONGEST_TOKEN = 1024
"""Bytes that no token of a real vocabulary reaches: a text of more than this times the context cannot fit."""

Truncate = Literal["left"] | None


def encode(stored: Stored, text: str, truncate: Truncate, keep: int, size: int | None = None) -> list[int]:
    """Return a text's ids, refused or cut where they pass the context; the length in bytes is looked at first.

    They are of a vocabulary of ``size``, by default the one that the model reads.
    """
    context = stored.model.spec.context
    if len(text) > context * LONGEST_TOKEN:
        if truncate is None:
            raise UsageError(
                f"a text of {len(text):,} characters cannot fit this model's context of {context:,} tokens",
                'shorten it; orrery generate --truncate left (truncate="left") cuts its beginning',
            )
        text = text[-context * LONGEST_TOKEN :]
    ids = tokenizer_of(stored).encode(text)
    check_ids(torch.tensor(ids, dtype=torch.long), size or vocabulary(stored))
    if truncate == "left":
        return ids[-keep:]
    if len(ids) > context:
        raise too_long(len(ids), context)
    return ids


def prompt(stored: Stored, text: str, truncate: Truncate, keep: int) -> list[int]:
    """Return a text's ids, the beginning of a text for an empty one.

    A source stands between the special tokens of its family (T5's ends with ``</s>``), as the model learned it.
    """
    ids = encode(stored, text, truncate, keep)
    if ids and reads_apart(stored):
        return source(stored, ids, truncate)
    if ids:
        return ids
    starts = [id for role in ("start", "end") if (id := control_token(stored, role)) is not None]
    if not starts:
        raise UsageError("the text is empty", "give at least one character")
    return starts[:1]


def source(stored: Stored, ids: list[int], truncate: Truncate) -> list[int]:
    """Return the ids of a source with the special tokens of its family, which must fit the context too.

    Raises:
        UsageError: they do not fit, and nothing is to be cut.
    """
    tokenizer, context = tokenizer_of(stored), stored.model.spec.context
    around = len(tokenizer.around([]).ids)
    if len(ids) + around > context and truncate is None:
        raise too_long(len(ids) + around, context)
    return tokenizer.around(ids[-(context - around) :] if truncate else ids).ids


def prompts(stored: Stored, texts: Sequence[str], truncate: Truncate, max_new_tokens: int) -> list[list[int]]:
    """Return the ids of prompts; an encoder-decoder's answer has a row of its own, so the whole row is theirs."""
    context = stored.model.spec.context
    keep = context if reads_apart(stored) else max(1, context - max_new_tokens)
    return [prompt(stored, text, truncate, keep) for text in texts]


def line(stored: Stored, text: str, place: int) -> list[int]:
    """Return the ids of one of many texts; an error says which."""
    try:
        return prompt(stored, text, None, stored.model.spec.context)
    except UsageError as error:
        raise UsageError(f"text {place + 1}: {error.message}", error.hint) from None


def limits_of(
    stored: Stored,
    longest: int,
    stop: Sequence[str] = (),
    end: frozenset[int] = frozenset(),
    demands: Demands = NO_DEMANDS,
) -> Limits:
    """Return when an answer ends, and which tokens it may hold."""
    ends = ends_of(stored) | end
    guides = guides_of(tokenizer_of(stored), ends, demands)
    return Limits(longest, stored.model.spec.context, ends, stop, wishes(stored).constraints(ends), guides)


def spell(stored: Stored, id: int) -> str:
    """Return how an id reads."""
    return tokenizer_of(stored).decode([id], special=True)


def spell_answer(stored: Stored, ids: Sequence[int]) -> str:
    """Return an answer as text, its end token left out."""
    return tokenizer_of(stored).decode(ids[:-1] if ids and ids[-1] in ends_of(stored) else ids)
