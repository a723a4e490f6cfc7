"""Texts into the ids that a model takes, when an answer ends, and its ids into text."""

from collections.abc import Sequence
from operator import index
from typing import Any, Literal

import torch

from orrery.errors import UsageError
from orrery.exchange.reading.read import Stored
from orrery.exchange.stored import control_token, ends_of, reads_apart, tokenizer_of, vocabulary, wishes
from orrery.generation.generate import too_long
from orrery.generation.row import Limits
from orrery.language_model.guides import NO_DEMANDS, Demands, Hold, guides_of, held
from orrery.nn.embeddings import check_ids
from orrery.text.tokenizer import Tokenizer

LONGEST_TOKEN = 1024
"""Bytes that no token of a real vocabulary reaches: a text of more than this times the context cannot fit."""

EVERYTHING = 1 << 40
"""Tokens that no text has: what is kept where nothing is to be cut."""

Truncate = Literal["left"] | None
Text = str | Sequence[int]
"""A text, or its ids as they are."""


def encode(stored: Stored, text: str, truncate: Truncate, keep: int, size: int | None = None) -> list[int]:
    """Return a text's ids, refused or cut where they pass the context; the length in bytes is looked at first.

    They are of a vocabulary of ``size``, by default the one that the model reads.
    """
    context = stored.model.spec.context
    if len(text) > context * LONGEST_TOKEN:
        if truncate is None:
            raise UsageError(
                f"a text of {len(text):,} characters cannot fit this model's context of {context:,} tokens",
                'shorten it; `truncate="left"` cuts its beginning',
            )
        text = text[-context * LONGEST_TOKEN :]
    ids = tokenizer_of(stored).encode(text)
    check_ids(torch.tensor(ids, dtype=torch.long), size or vocabulary(stored))
    if truncate == "left":
        return ids[-keep:]
    if len(ids) > context:
        raise too_long(len(ids), context)
    return ids


def read(stored: Stored, given: Text, truncate: Truncate, keep: int) -> list[int]:
    """Return a text's ids with the special tokens that its tokenizer puts around any text: what every door reads.

    They are those of ``AutoTokenizer(text)``: Llama's text begins with ``<s>``, T5's ends with ``</s>``, GPT-2's has
    neither. Ids stay what they are.

    Raises:
        UsageError: they do not fit the context, and nothing is to be cut.
        DataError: an id outside the vocabulary.
    """
    if isinstance(given, str):
        return framed(stored, encode(stored, given, truncate, keep), truncate, keep)
    ids = ids_of(given)
    check_ids(torch.tensor(ids, dtype=torch.long), vocabulary(stored))
    if truncate is None and len(ids) > stored.model.spec.context:
        raise too_long(len(ids), stored.model.spec.context)
    return ids[max(0, len(ids) - keep) :] if truncate else ids


def prompt(stored: Stored, given: Text, truncate: Truncate, keep: int) -> list[int]:
    """Return what `read` does; nothing at all is the token that begins a text, or the one that ends it.

    Raises:
        UsageError: as in `read`, or the text is empty and the tokenizer has neither token.
    """
    ids = read(stored, given, truncate, keep)
    if ids:
        return ids
    start = start_of(stored)
    if start is None:
        raise UsageError("the text is empty", "give at least one character")
    return [start]


def framed(stored: Stored, ids: list[int], truncate: Truncate, keep: int | None = None) -> list[int]:
    """Return the ids of a text with the special tokens of its tokenizer around them, of which all fit.

    Raises:
        UsageError: they do not fit, and nothing is to be cut.
    """
    tokenizer, context = tokenizer_of(stored), stored.model.spec.context
    added = len(tokenizer.around([]).ids)
    if len(ids) + added > context and truncate is None:
        raise too_long(len(ids) + added, context)
    room = max(0, (context if keep is None else keep) - added)
    return tokenizer.around(ids[max(0, len(ids) - room) :] if truncate else ids).ids


def before_text(stored: Stored) -> list[int]:
    """Return what stands before the first token of a text, and predicts it.

    The special tokens that its tokenizer puts there; without any, the token that begins a text, or the one that ended
    the text before it. Empty where the tokenizer has neither.
    """
    start = start_of(stored)
    return opening_of(tokenizer_of(stored)) or ([] if start is None else [start])


def opening_of(tokenizer: Tokenizer) -> list[int]:
    """Return the special tokens that a tokenizer puts before a text."""
    return list(tokenizer.opening)


def start_of(stored: Stored) -> int | None:
    """Return the token behind which a text begins: the start token, or the end token of the text before it."""
    start = control_token(stored, "start")
    return control_token(stored, "end") if start is None else start


def ids_of(given: Any) -> list[int]:
    """Return a row of ids as a list.

    Raises:
        UsageError: it is none; numbers that are not whole are no ids.
    """
    try:
        return [index(id) for id in given]
    except TypeError:
        raise UsageError(f"a {type(given).__name__} is neither a text nor a row of ids", "give one of them") from None


def prompts(stored: Stored, texts: Text | Sequence[Text], truncate: Truncate, max_new_tokens: int) -> list[list[int]]:
    """Return the ids of prompts; an encoder-decoder's answer has a row of its own, so the whole row is theirs."""
    context = stored.model.spec.context
    keep = context if reads_apart(stored) else max(1, context - max_new_tokens)
    return [prompt(stored, text, truncate, keep) for text in several(texts)]


def several(texts: Text | Sequence[Text]) -> list[Text]:
    """Return texts as a list: a single text, or a single row of ids, is one of them, not one a letter or an id."""
    if isinstance(texts, str) or (len(texts) > 0 and all(isinstance(one, int) for one in texts)):
        return [texts]  # type: ignore[list-item]
    for one in texts:
        if not isinstance(one, str) and not (isinstance(one, Sequence) and all(isinstance(id, int) for id in one)):
            raise UsageError(f"{str(one)[:40]!r} is neither a text nor a row of ids", 'give ["a text"] or [[1, 2, 3]]')
    return list(texts)  # type: ignore[arg-type]


def line(stored: Stored, text: Text, place: int) -> list[int]:
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
    hold: Hold = held,
) -> Limits:
    """Return when an answer ends, and which tokens it may hold; ``hold`` makes what holds it to a form."""
    ends = ends_of(stored) | end
    guides = guides_of(tokenizer_of(stored), ends, demands, hold)
    said = wishes(stored)
    stops = tuple(dict.fromkeys((*stop, *said.stop)))
    return Limits(longest, stored.model.spec.context, ends, stops, said.constraints(ends), guides)


def spell(stored: Stored, id: int) -> str:
    """Return how an id reads."""
    return tokenizer_of(stored).decode([id], special=True)


def spell_answer(stored: Stored, ids: Sequence[int]) -> str:
    """Return an answer as text, its end token left out."""
    return tokenizer_of(stored).decode(ids[:-1] if ids and ids[-1] in ends_of(stored) else ids)
