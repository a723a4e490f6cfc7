"""Texts as rows of ids: the special tokens around them, what is cut, windows over long texts, and padded batches."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from orrery.data.batches.framing import longest_first
from orrery.errors import DataError, UsageError
from orrery.language_model.model import LanguageModel
from orrery.nn.embeddings import TokenTypeEmbedding, check_ids


@dataclass(frozen=True)
class InputRow:
    """Ids that the model reads at once.

    Attributes:
        ids: the tokens, special ones among them.
        token_types: the token type of each.
        texts: of each whether it belongs to the first text (0), to the second (1) or is a special token (-1).
        start: in a window, the number of its first token in the text that it is cut from.
        number: of the input, among several.
    """

    ids: list[int]
    token_types: list[int]
    texts: list[int]
    start: int = 0
    number: int = 0

    @property
    def read(self) -> list[int]:
        """What a model that writes reads."""
        return self.ids


def row(lm: LanguageModel, first: Sequence[int], second: Sequence[int] | None = None, start: int = 0) -> InputRow:
    """Return ids with the special tokens of the family around them.

    Raises:
        DataError: there is not one token, or an id outside the model's vocabulary.
    """
    framed = lm.tokenizer.around(first, second)
    if not framed.ids:
        raise DataError("the text is empty, and this tokenizer puts no special token around it", "give it a word")
    check_ids(torch.tensor(framed.ids, dtype=torch.long), vocabulary(lm))
    return InputRow(framed.ids, framed.token_types, framed.texts, start)


def whole(lm: LanguageModel, text: str, pair: str | None = None, *, truncation: bool) -> InputRow:
    """Return a text, or two, as one row; with ``truncation`` the longer one is cut until they fit.

    Raises:
        UsageError: they do not fit, and nothing may be cut.
    """
    first, second = lm.tokenizer.encode(text), None if pair is None else lm.tokenizer.encode(pair)
    room = room_of(lm, paired=second is not None)
    total = len(first) + len(second or ())
    if total > room and not truncation:
        raise too_long(total + lm.context - room, lm.context)
    if second is None:
        return row(lm, lm.tokenizer.kept(first, room))
    keep, keep_second = longest_first(len(first), len(second), room)
    return row(lm, lm.tokenizer.kept(first, keep), lm.tokenizer.kept(second, keep_second))


def room_of(lm: LanguageModel, *, paired: bool, length: int | None = None) -> int:
    """Return how many tokens of texts fit into rows of ``length``, by default the context, beside the special ones.

    Raises:
        UsageError: none.
    """
    size = lm.context if length is None else length
    room = size - len(lm.tokenizer.around([], [] if paired else None).ids)
    if room < 1:
        raise UsageError(f"rows of {size:,} tokens have no room beside the special tokens", "choose a longer row")
    return room


def too_long(tokens: int, context: int, more: str = "") -> UsageError:
    """Return the error of a text that is longer than the context."""
    return UsageError(
        f"a text of {tokens:,} tokens is longer than this model's context of {context:,}",
        f"shorten it{more}; `truncation=True` leaves out its end",
    )


def vocabulary(lm: LanguageModel) -> int:
    """Return the number of tokens that the model reads.

    Raises:
        UsageError: it reads images.
    """
    spec = lm.model.spec
    size = spec.target_vocabulary if spec.reads_pair and not spec.writes else spec.vocabulary
    if size is None:
        raise UsageError("this model reads images, not texts", "load a model of texts")
    return size


def ask(lm: LanguageModel, rows: Sequence[InputRow], head: str) -> tuple[Tensor, Bool[Tensor, "B L"]]:
    """Return what a head says of rows as one batch, padded on the right, and which of their tokens are real.

    Raises:
        UsageError: the model reads a source and writes beside it.
    """
    batch, real_BL = batch_of(lm, rows)
    return lm.model(batch, (head,))[head].cpu(), real_BL


def batch_of(lm: LanguageModel, rows: Sequence[InputRow]) -> tuple[dict[str, Any], Bool[Tensor, "B L"]]:
    """Return rows as one batch, padded on the right, as the model reads it, and which of their tokens are real.

    Raises:
        UsageError: the model reads a source and writes beside it.
    """
    if lm.model.spec.reads_source:
        raise UsageError("an encoder-decoder has no head over what it reads", "load an encoder or a decoder")
    longest = max(len(row.ids) for row in rows)
    ids_BL = padded([row.ids for row in rows], longest)
    real_BL = torch.arange(longest) < torch.tensor([len(row.ids) for row in rows])[:, None]
    batch: dict[str, Any] = {"ids": ids_BL.to(lm.device)}
    if not bool(real_BL.all()):
        batch["real"] = real_BL.to(lm.device)
    if has_token_types(lm):
        batch["token_types"] = padded([row.token_types for row in rows], longest).to(lm.device)
    return batch, real_BL


def padded(rows: Sequence[Sequence[int]], longest: int) -> Int[Tensor, "B L"]:
    """Return rows of numbers with zeros behind the shorter ones."""
    return torch.tensor([[*row, *[0] * (longest - len(row))] for row in rows], dtype=torch.long)


def has_token_types(lm: LanguageModel) -> bool:
    """Say whether the model tells two texts of a row apart by their token types."""
    embed = getattr(lm.model.spec, "embed", None)
    return isinstance(embed, TokenTypeEmbedding.Spec) and embed.token_types > 1
