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
from orrery.language_model.texts import ids_of
from orrery.models.sentence_vectors import Sentences, mean_of_tokens
from orrery.nn.embeddings import TokenTypeEmbedding

Item = str | Sequence[int]
"""A text, or the ids of one as they are read."""
NO_PROMPT = "no prompt is called"
"""How an error begins that is about the name of a prompt, not about a text."""


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
class VectorRow:
    """What is read for one vector.

    Attributes:
        ids: the tokens, special ones among them.
        token_types: of each.
        prompt: how many of them are pooled with none.
        cut: how many were left out at the end.
        number: of the input, among several.
    """

    ids: list[int]
    token_types: list[int]
    prompt: int = 0
    cut: int = 0
    number: int = 0


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
    embedder = TextEmbedder.of(stored, prompt, normalise, truncation)
    rows = []
    for place, item in enumerate(items):
        where = names[place] if names is not None else f"input {place + 1}" if len(items) > 1 else ""
        try:
            rows.append(embedder.row(item))
        except OrreryError as error:
            raise type(error)(f"{where}: {error.message}" if where else error.message, error.hint) from None
    with torch.no_grad():
        lengths = [len(row.ids) for row in rows]
        return in_batches(
            lengths,
            batch_size,
            lambda numbers: embedder.vectors([rows[number] for number in numbers]),
            lambda count: done(count, len(rows)),
        )


@dataclass(frozen=True)
class TextEmbedder:
    """A model with all that decides which vector a text gets: texts into rows of ids, rows into vectors.

    Attributes:
        stored: any model of texts.
        how: what its folder says of vectors.
        before: the text in front of every text.
        truncation: whether what is longer than a row loses its end.
        normalises: whether vectors get the length 1.
    """

    stored: Stored
    how: Sentences
    before: str
    truncation: bool
    normalises: bool

    @classmethod
    def of(cls, stored: Stored, prompt: str | None, normalise: bool | None, truncation: bool | None) -> "TextEmbedder":
        """Return what follows such settings; those that are ``None`` are as the model's folder says.

        Raises:
            UsageError: the folder has no such prompt.
        """
        how = sentences_of(stored)
        before = prompt_of(how.prompts, how.prompt, prompt)
        cut = how.given if truncation is None else truncation
        return cls(stored, how, before, cut, how.vectors.normalises if normalise is None else normalise)

    def row(self, item: Item) -> VectorRow:
        """Return a text with its special tokens, or ids as they are.

        Raises:
            UsageError: it is longer than the context, and nothing may be cut.
            DataError: it has no ids.
            ModelFileError: the model came without a tokenizer.
        """
        if isinstance(item, str):
            return _text(self.stored, self.how, item, self.before, self.truncation)
        given, limit = ids_of(item), self.stored.model.spec.context
        if not given:
            raise DataError("there is not one id", "give at least one")
        if len(given) > limit and not self.truncation:
            raise too_long(len(given), limit)
        ids = given[:limit]
        return VectorRow(ids, [0] * len(ids), 0, len(given) - len(ids))

    def vectors(self, rows: Sequence[VectorRow]) -> list[TextVector]:
        """Return the vector of each row of a batch; gradients are off."""
        found_BE = _computed(self.stored, self.how, rows)
        if self.normalises and not self.how.vectors.normalises:
            found_BE = F.normalize(found_BE, dim=-1)
        return [TextVector(vector_E, len(row.ids), row.cut) for vector_E, row in zip(found_BE.cpu(), rows, strict=True)]


def prompt_of(prompts: Mapping[str, str], usual: str | None, prompt: str | None) -> str:
    """Return the text that stands in front of every text: a folder's by its name, or one of a caller's own.

    Raises:
        UsageError: the folder has no such prompt.
    """
    if prompt is None:
        return "" if usual is None else prompts[usual]
    if prompt in prompts:
        return prompts[prompt]
    if prompt == "" or prompt[-1] in " :\n":
        return prompt
    known = f"the folder has {', '.join(prompts)}" if prompts else "the folder has none"
    raise UsageError(f"{NO_PROMPT} {prompt!r}", f"{known}; a prompt of your own ends in a blank or a colon")


def _text(stored: Stored, how: Sentences, text: str, before: str, truncation: bool) -> VectorRow:
    tokenizer, context = tokenizer_of(stored), stored.model.spec.context
    text_read = before + text
    ids = tokenizer.encode(text_read.lower() if how.lowercase else text_read)
    around = len(tokenizer.around([]).ids)
    limit = min(context, how.length or context)
    room = limit - around
    if len(ids) > room and not truncation:
        raise too_long(len(ids) + around, context)
    kept = [id for id in tokenizer.kept(ids, max(0, room)) if id != how.unread]
    framed = tokenizer.around(kept)
    # A table gives a text without tokens the mean of nothing, which is the vector 0.
    if not framed.ids and not stored.is_table:
        raise DataError("the text is empty, and this tokenizer puts no special token around it", "give it a word")
    left = 0
    if before and not how.pools_prompt:
        alone = tokenizer.around(tokenizer.encode(before.lower() if how.lowercase else before))
        left = len(alone.ids) - (1 if alone.texts and alone.texts[-1] == -1 else 0)
    return VectorRow(framed.ids, framed.token_types, left, max(0, len(ids) - room))


def _computed(stored: Stored, how: Sentences, rows: Sequence[VectorRow]) -> Tensor:
    """Return the vectors of a batch."""
    longest = max(1, *(len(row.ids) for row in rows))
    lengths = torch.tensor([len(row.ids) for row in rows])
    real_BL: Bool[Tensor, "B L"] = torch.arange(longest) < lengths[:, None]
    ids_BL = torch.zeros(len(rows), longest, dtype=torch.long)
    token_types_BL = torch.zeros_like(ids_BL)
    for place, row in enumerate(rows):
        ids_BL[place, : len(row.ids)] = torch.tensor(row.ids)
        token_types_BL[place, : len(row.ids)] = torch.tensor(row.token_types)
    embed = getattr(getattr(stored.model, "reader", stored.model), "embed", None)
    token_types = token_types_BL if isinstance(embed, TokenTypeEmbedding) else None
    x_BLD = hidden(stored, ids_BL, real_BL.long(), token_types)
    pooled_BL = real_BL & (torch.arange(longest) >= torch.tensor([row.prompt for row in rows])[:, None])
    return how.vectors(x_BLD, pooled_BL.to(x_BLD.device))


def too_long(tokens: int, context: int) -> UsageError:
    """Return the error of a text that is longer than the context."""
    return UsageError(
        f"a text of {tokens:,} tokens is longer than this model's context of {context:,}",
        "shorten it; `truncation=True` leaves out its end",
    )
