"""Scores of pairs of texts, and documents in the order of their scores for a query: cross-encoders."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from orrery.data.batches.framing import longest_first
from orrery.errors import DataError, OrreryError, UsageError
from orrery.exchange.reading.read import Stored
from orrery.exchange.stored import device_of, refuse_no_number, tokenizer_of
from orrery.generation.batched import in_batches
from orrery.language_model.vectors import prompt_of, too_long
from orrery.models.pair_scores import PairScores, PairTemplate
from orrery.text.chat.jinja import JinjaTemplate
from orrery.text.chat.render import template_of
from orrery.text.chat.spans.encoding import encode_spans


@dataclass(frozen=True)
class Ranked:
    """A document in its place.

    Attributes:
        index: its number among those that were given.
        score: how well it fits the query, as the model says.
        document: its text.
    """

    index: int
    score: float
    document: str


@dataclass(frozen=True)
class PairScore:
    """The score of a pair.

    Attributes:
        score: a number, or one for each label; in float32 at least, on the CPU.
        tokens: how many were read for it.
        cut: how many were left out.
    """

    score: Tensor
    tokens: int
    cut: int = 0


@dataclass(frozen=True)
class _Row:
    ids: list[int]
    token_types: list[int]
    cut: int = 0


def scoring_of(stored: Stored) -> PairScores:
    """Return how this model scores pairs of texts.

    Raises:
        UsageError: neither a head nor a file says so.
    """
    if stored.pairs is None:
        has = ", ".join(stored.model.spec.head_names) or "none"
        message = f"nothing says how {stored.folder} scores a text beside another (its heads: {has})"
        raise UsageError(message, "load a cross-encoder, or compare vectors: orrery embed")
    return stored.pairs


def check_ranks(stored: Stored) -> None:
    """Refuse a model that cannot order documents.

    Raises:
        UsageError: it scores no pairs, or gives one several numbers.
    """
    if (labels := scoring_of(stored).scorer.labels) != 1:
        message = f"this model gives a pair {labels} numbers, and no order follows from several"
        raise UsageError(message, "lm.score_pairs gives all of them, and orrery classify --pair their labels")


def rank(
    stored: Stored, query: str, documents: Sequence[str], *, top_n: int | None = None, **settings: object
) -> list[Ranked]:
    """Return documents by their scores, the best first; see ``LanguageModel.rank``."""
    check_ranks(stored)
    if isinstance(documents, str):
        raise UsageError("documents are a list of texts", "put the one text into a list")
    documents = list(documents)
    if top_n is not None and (type(top_n) is not int or top_n < 1):
        raise UsageError(f"the best {top_n!r} documents", "top_n is 1 or more")
    named = {"names": [f"document {number}" for number in range(1, len(documents) + 1)], **settings}
    scored = score_pairs(stored, [(query, document) for document in documents], **named)  # type: ignore[arg-type]
    scores = [float(one.score) for one in scored]
    order = sorted(range(len(scores)), key=lambda number: -scores[number])
    return [Ranked(number, scores[number], documents[number]) for number in order[:top_n]]


def score_pairs(
    stored: Stored,
    pairs: Sequence[tuple[str, str]],
    *,
    prompt: str | None = None,
    truncation: bool = True,
    activation: str | None = None,
    batch_size: int = 32,
    names: Sequence[str] | None = None,
    done: Callable[[int, int], None] = lambda count, total: None,
) -> list[PairScore]:
    """Return the score of each pair; see ``LanguageModel.score_pairs``.

    Args:
        stored: a model with a head for rows, or whose files say how it scores two texts.
        pairs: of two texts, the query first.
        prompt: the name of one of the folder's prompts, or a text that ends in a blank or a colon; it stands in front
            of the first text.
        truncation: whether what is longer than a row is cut.
        activation: torch's name of what makes scores of logits; by default as the folder says.
        batch_size: rows computed at once.
        names: what errors call each pair; by default ``pair 3``.
        done: told after each batch how many pairs are done, and of how many.

    Raises:
        UsageError: the model scores none, a row is longer than the context, or a prompt is not there.
        DataError: a pair that is none, or without a token.
        ModelFileError: a weight is no number, and so is a score.
    """
    how, pairs = scoring_of(stored), list(pairs)
    how = how if activation is None else replace(how, activation=activation)
    framed = _framing(stored, how, prompt_of(how.prompts, how.prompt, prompt), truncation)
    rows = []
    for place, pair in enumerate(pairs):
        where = names[place] if names is not None else f"pair {place + 1}" if len(pairs) > 1 else ""
        try:
            rows.append(framed(*_two(pair)))
        except OrreryError as error:
            raise type(error)(f"{where}: {error.message}" if where else error.message, error.hint) from None

    def computed(numbers: list[int]) -> list[PairScore]:
        some = [rows[number] for number in numbers]
        found_BN = how.activate(how.scorer(stored.model, _batch(stored, how, some))).cpu()
        refuse_no_number(stored, float(found_BN.sum()))
        scores = found_BN[:, 0] if how.scorer.labels == 1 else found_BN
        return [PairScore(score, len(row.ids), row.cut) for score, row in zip(scores, some, strict=True)]

    with torch.no_grad():
        lengths = [len(row.ids) for row in rows]
        return in_batches(lengths, batch_size, computed, lambda count: done(count, len(rows)))


def _two(pair: Sequence[str]) -> tuple[str, str]:
    if isinstance(pair, str) or len(pair) != 2 or not all(isinstance(text, str) for text in pair):
        raise DataError(f"{str(pair)[:60]!r} is no pair of texts", "give two texts, the query first")
    return pair[0], pair[1]


def _framing(stored: Stored, how: PairScores, before: str, truncation: bool) -> Callable[[str, str], _Row]:
    """Return what makes the row of two texts."""
    context = stored.model.spec.context
    limit = min(context, how.length or context)
    if how.template is not None:
        return _Messages(stored, how.template, before, limit, truncation)
    tokenizer = tokenizer_of(stored)
    around = len(tokenizer.around([], []).ids)
    room = limit - around
    if room < 1:
        raise UsageError(f"rows of {limit:,} tokens have no room beside the special tokens", "choose a longer row")

    def of(query: str, document: str) -> _Row:
        first, second = (
            tokenizer.encode(text.lower() if how.lowercase else text) for text in (before + query, document)
        )
        total = len(first) + len(second)
        if total > room and not truncation:
            raise too_long(total + around, limit)
        sizes = longest_first(len(first), len(second), room)
        kept = [
            ids[len(ids) - size :] if how.from_left else ids[:size]
            for ids, size in zip((first, second), sizes, strict=True)
        ]
        framed = tokenizer.around(*kept)
        if not framed.ids:
            raise DataError("both texts are empty, and this tokenizer puts no special token around", "give a word")
        return _Row(framed.ids, framed.token_types, total - sum(sizes))

    return of


class _Messages:
    """Rows of two texts as messages, by a chat template."""

    def __init__(self, stored: Stored, template: PairTemplate, before: str, limit: int, truncation: bool) -> None:
        tokenizer = tokenizer_of(stored)
        form = template_of(stored.folder, stored.chat, tokenizer) if not template.source else None
        self._tokenizer = form.tokenizer if form is not None else tokenizer
        self._form = JinjaTemplate(template.source or (form.source if form is not None else ""), tokenizer)
        self._template, self._before = template, before
        self._limit, self._truncation = limit, truncation
        filled = [self._ids("0", "0"), self._ids("1 2 3 4", "1 2 3 4")]
        self._end = _common_end(*filled) if template.whole_end else []

    def __call__(self, query: str, document: str) -> _Row:
        """Return the row of two texts; one that is too long loses what stands before the template's own end."""
        ids, limit = self._ids(query, document), self._limit
        cut = max(0, len(ids) - limit)
        if cut and not self._truncation:
            raise too_long(len(ids), limit)
        kept = min(len(self._end), limit) if cut else 0
        ids = [*ids[: limit - kept], *self._end[len(self._end) - kept :]] if cut else ids
        if not ids:
            raise DataError("the template makes nothing of the two texts", "its folder is damaged")
        return _Row(ids, [0] * len(ids), cut)

    def _ids(self, query: str, document: str) -> list[int]:
        said = [*([("system", self._before)] if self._before else []), ("query", query), ("document", document)]
        messages = [{"role": role, "content": self._content(text)} for role, text in said]
        template = self._template
        spans = self._form.spans(messages, template.prompt, **template.variables)
        return encode_spans(self._tokenizer, spans).ids

    def _content(self, text: str) -> object:
        return [{"type": "text", "text": text}] if self._template.structured else text


def _common_end(first: Sequence[int], second: Sequence[int]) -> list[int]:
    """Return the tokens in which two rows with other texts end alike: those of the template; none where all are."""
    count = 0
    while count < min(len(first), len(second)) and first[-1 - count] == second[-1 - count]:
        count += 1
    return list(first[len(first) - count :]) if 0 < count < min(len(first), len(second)) else []


def _batch(stored: Stored, how: PairScores, rows: Sequence[_Row]) -> dict[str, Tensor]:
    """Return rows as a batch, padded on the right."""
    longest, device = max(len(row.ids) for row in rows), device_of(stored)
    lengths = torch.tensor([len(row.ids) for row in rows])
    batch = {"ids": _padded([row.ids for row in rows], longest), "real": torch.arange(longest) < lengths[:, None]}
    if how.reads_token_types and stored.model.spec.token_types > 1:
        batch["token_types"] = _padded([row.token_types for row in rows], longest)
    return {name: value.to(device) for name, value in batch.items()}


def _padded(rows: Sequence[Sequence[int]], longest: int) -> Tensor:
    return torch.tensor([[*row, *[0] * (longest - len(row))] for row in rows], dtype=torch.long)
