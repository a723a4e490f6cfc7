"""Vectors of texts: as a folder of sentence-transformers says, or the mean over a text's tokens."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool
from torch import Tensor
from torch.nn import functional as F

from orrery.errors import DataError, OrreryError, UsageError
from orrery.exchange.reading.read import Stored
from orrery.exchange.stored import tokenizer_of
from orrery.generation.batched import in_batches
from orrery.language_model.outputs import hidden
from orrery.models.sentence_vectors import Sentences, mean_of_tokens
from orrery.nn.embeddings import SegmentedEmbedding

Item = str | Sequence[int]
"""A text, or the ids of one as they are read."""


@dataclass(frozen=True)
class TextVector:
    """The vector of a text.

    Attributes:
        vector: in float32 at least, on the CPU.
        tokens: how many were read for it.
        cut: how many were left out at its end.
    """

    vector: Tensor
    tokens: int
    cut: int = 0


@dataclass(frozen=True)
class _Row:
    """Ids with their segments; ``prompt`` of them are pooled with none, ``cut`` are left out."""

    ids: list[int]
    segments: list[int]
    prompt: int = 0
    cut: int = 0


def sentences_of(stored: Stored) -> Sentences:
    """Return how this model makes vectors of texts."""
    return mean_of_tokens() if stored.sentences is None else stored.sentences


def vectors(
    stored: Stored,
    items: Sequence[Item],
    *,
    prompt: str | None = None,
    normalise: bool | None = None,
    truncation: bool | None = None,
    batch_size: int = 32,
    names: Sequence[str] | None = None,
    done: Callable[[int, int], None] = lambda count, total: None,
) -> list[TextVector]:
    """Return the vector of each text; see ``LanguageModel.embed``.

    Args:
        stored: any model of texts.
        items: texts, which get the special tokens of the family, or ids.
        prompt: the name of one of the folder's prompts, or a text that ends in a blank or a colon.
        normalise: whether vectors get the length 1; by default as the folder says.
        truncation: whether what is longer than a row is cut, where the tokenizer's ``truncation_side`` says; by default
            where the folder says how long rows are.
        batch_size: rows computed at once.
        names: what errors call each text; by default ``input 3``.
        done: told after each batch how many rows are done, and of how many.

    Raises:
        UsageError: a row longer than the context, or a prompt that the folder has not.
        DataError: a row without ids, or with one outside the vocabulary.
    """
    how = sentences_of(stored)
    before = prompt_of(how.prompts, how.prompt, prompt)
    cut = how.given if truncation is None else truncation
    rows = []
    for place, item in enumerate(items):
        where = names[place] if names is not None else f"input {place + 1}" if len(items) > 1 else ""
        rows.append(_row(stored, how, item, before, cut, where))
    wanted = how.vectors.normalises if normalise is None else normalise

    def computed(numbers: list[int]) -> list[TextVector]:
        some = [rows[number] for number in numbers]
        found_BE = _computed(stored, how, some)
        if wanted and not how.vectors.normalises:
            found_BE = F.normalize(found_BE, dim=-1)
        return [TextVector(vector_E, len(row.ids), row.cut) for vector_E, row in zip(found_BE.cpu(), some, strict=True)]

    with torch.no_grad():
        lengths = [len(row.ids) for row in rows]
        return in_batches(lengths, batch_size, computed, lambda count: done(count, len(rows)))


def prompt_of(prompts: Mapping[str, str], usual: str | None, asked: str | None) -> str:
    """Return the text that stands in front of every text: a folder's by its name, or one of a caller's own.

    Raises:
        UsageError: the folder has no such prompt.
    """
    if asked is None:
        return "" if usual is None else prompts[usual]
    if asked in prompts:
        return prompts[asked]
    if asked == "" or asked[-1] in " :\n":
        return asked
    known = f"the folder has {', '.join(prompts)}" if prompts else "the folder has none"
    raise UsageError(f"no prompt is called {asked!r}", f"{known}; a prompt of your own ends in a blank or a colon")


def _row(stored: Stored, how: Sentences, item: Item, before: str, truncation: bool, where: str) -> _Row:
    """Return a text with its special tokens, or ids as they are."""
    try:
        if isinstance(item, str):
            return _text(stored, how, item, before, truncation)
        limit = stored.model.spec.context
        if not item:
            raise DataError("there is not one id", "give at least one")
        if len(item) > limit and not truncation:
            raise too_long(len(item), limit)
        ids = list(item[:limit])
        return _Row(ids, [0] * len(ids), 0, len(item) - len(ids))
    except OrreryError as error:
        raise type(error)(f"{where}: {error.message}" if where else error.message, error.hint) from None


def _text(stored: Stored, how: Sentences, text: str, before: str, truncation: bool) -> _Row:
    tokenizer, context = tokenizer_of(stored), stored.model.spec.context
    whole = before + text
    ids = tokenizer.encode(whole.lower() if how.lowercase else whole)
    around = len(tokenizer.around([]).ids)
    limit = min(context, how.length or context)
    room = limit - around
    if len(ids) > room and not truncation:
        raise too_long(len(ids) + around, context)
    framed = tokenizer.around(tokenizer.kept(ids, max(0, room)))
    if not framed.ids:
        raise DataError("the text is empty, and this tokenizer puts no special token around it", "give it a word")
    left = 0
    if before and not how.pools_prompt:
        alone = tokenizer.around(tokenizer.encode(before.lower() if how.lowercase else before))
        left = len(alone.ids) - (1 if alone.texts and alone.texts[-1] == -1 else 0)
    return _Row(framed.ids, framed.segments, left, max(0, len(ids) - room))


def _computed(stored: Stored, how: Sentences, rows: Sequence[_Row]) -> Tensor:
    """Return the vectors of a batch."""
    longest = max(len(row.ids) for row in rows)
    lengths = torch.tensor([len(row.ids) for row in rows])
    real_BL: Bool[Tensor, "B L"] = torch.arange(longest) < lengths[:, None]
    ids_BL = torch.zeros(len(rows), longest, dtype=torch.long)
    segments_BL = torch.zeros_like(ids_BL)
    for place, row in enumerate(rows):
        ids_BL[place, : len(row.ids)] = torch.tensor(row.ids)
        segments_BL[place, : len(row.ids)] = torch.tensor(row.segments)
    embed = getattr(getattr(stored.model, "reader", stored.model), "embed", None)
    segments = segments_BL if isinstance(embed, SegmentedEmbedding) else None
    x_BLD = hidden(stored, ids_BL, real_BL.long(), segments)
    pooled_BL = real_BL & (torch.arange(longest) >= torch.tensor([row.prompt for row in rows])[:, None])
    return how.vectors(x_BLD, pooled_BL.to(x_BLD.device))


def too_long(tokens: int, context: int) -> UsageError:
    """Return the error of a text that is longer than the context."""
    return UsageError(
        f"a text of {tokens:,} tokens is longer than this model's context of {context:,}",
        "shorten it; `truncation=True` leaves out its end",
    )
