"""Tagged sentences: each word has a label, which its first token is trained to give."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from orrery.data.documents import unknown_share
from orrery.data.rows.label_notes import label_notes
from orrery.data.rows.labelled import counted
from orrery.data.rows.tagged import Tagged, read_tagged
from orrery.data.sources import BatchRequest, Examples, Source, register
from orrery.data.sources._rows import RowsSettings, divided, examples_of, fingerprint_of, unseen
from orrery.errors import DataError

if TYPE_CHECKING:
    from orrery.data.batches.padded_rows import Row
    from orrery.text.tokenizer import Tokenizer


SINGLE = (
    "warning: every sentence has one word alone; where a line is a word, and an empty line ends a sentence, take the "
    "line of names away and call the file NAME.conll"
)


class TaggedSettings(RowsSettings):
    """Which sentences: CoNLL-U or BIO files, of which ``layer`` names the annotation, or rows with two lists or spans.

    By default the layer is the tags of a BIO file and the upos of CoNLL-U. ``words`` and ``tags`` are the columns of
    rows, those of a text and of the spans in it too; what is not named is found by its name. ``names`` gives labels
    other names, such as those of numbers: ``{0: O, 1: B-PER}``.
    """

    kind: Literal["tagged"] = "tagged"
    layer: Literal["tags", "upos", "xpos", "deprels", "lemmas"] | None = None
    words: str | None = None
    tags: str | None = None
    names: dict[str, str] = Field(default_factory=dict)


@register
class TaggedSource(Source):
    """Tagged sentences; ``targets`` [B, L] has a word's label at its first token and -100 elsewhere."""

    Settings = TaggedSettings
    gives = ("ids", "real", "targets")
    must_be_read = ("targets",)
    batch_kinds = by_tokens = ("padded",)
    needs_tokenizer = gives_text = True

    def __init__(self, train: Sequence[Tagged], held_back: Sequence[Tagged], notes: Sequence[str] = ()) -> None:
        self.train, self.held_back, self.notes = train, held_back, notes

    @classmethod
    def read(cls, settings: TaggedSettings) -> "TaggedSource":
        """Read the sentences.

        Raises:
            DataError: one has no labels, all words have the same, or one held back has a label of its own.
        """
        notes: list[str] = []

        def read(source: str) -> Iterable[Tagged]:
            how: dict[str, Any] = {"words": settings.words, "tags": settings.tags, "tell": notes.append}
            how |= {"invalid": settings.invalid, "skip_bad": settings.skip_bad}
            for row in read_tagged(source, settings.layer, **how):
                yield replace(row, tags=tuple(settings.names.get(tag, tag) for tag in row.tags))

        sides = divided(settings, read, lambda rows, every: [tuple(dict.fromkeys(row.tags)) for row in rows])
        tagged = cls(*sides, notes)
        tagged._check(settings)
        return tagged

    def _check(self, settings: TaggedSettings) -> None:
        known, source = self.labels, settings.train
        if len(known) < 2:
            only = next(iter(known), "")
            raise DataError(f"{source}: every word is labelled {only!r}: there is nothing to tell apart", "add others")
        for sentence in self.held_back:
            if unknown := [tag for tag in sentence.tags if tag not in known]:
                raise unseen(sentence.where, unknown[0], known, settings)

    @property
    def labels(self) -> Mapping[str, int]:
        """How often each label occurs in training."""
        return counted([sentence.tags for sentence in self.train])

    def remarks(self) -> Sequence[str]:
        """Say how often each label occurs, which are nearly equal, and what stands on both sides or on one alone."""
        held_back = counted([sentence.tags for sentence in self.held_back])
        single = len(self.train) > 1 and all(len(sentence.words) == 1 for sentence in self.train)
        labels = label_notes(self.labels, held_back, "words", "data.names gives one the other's name")
        return [*self.notes, *labels, *([SINGLE] if single else []), *super().remarks()]

    @property
    def fingerprint(self) -> str:
        """The sha256 of all sentences in their order, those held back too."""
        return fingerprint_of(
            (sentence.words, sentence.tags, *filter(None, (sentence.written,)))
            for sentence in (*self.train, *self.held_back)
        )

    def texts(self) -> Iterable[str]:
        """Return the training sentences."""
        return (sentence.text for sentence in self.train)

    def examples(self, request: BatchRequest) -> Examples:
        """Encode the sentences, cut those that are too long into several rows, and make batches."""
        train, notes = encoded(request, self.train, "training")
        others, more = encoded(request, self.held_back, "held-back")
        unknown = unknown_share(request.required_tokenizer, [row["ids"] for row in train])
        return examples_of(request, train, others, (*notes, *more, *unknown))


def encoded(request: BatchRequest, sentences: Sequence[Tagged], what: str) -> "tuple[list[Row], list[str]]":
    """Return the rows of sentences, and what to say: how many were cut, and how many words have no token."""
    from orrery.data.batches.words import NONE, tokenise_words

    tokenizer, numbers = request.required_tokenizer, {name: n for n, name in enumerate(request.labels)}
    rows: list[Row] = []
    words = lost = cut = 0
    for sentence in sentences:
        tokenised = tokenise_words(tokenizer, sentence.words, sentence.written)
        tags = [numbers[tag] for tag in sentence.tags]
        own = rows_of(tokenizer, tokenised.ids, tokenised.firsts, tags, request.length)
        words, lost, cut = words + len(sentence.words), lost + tokenised.firsts.count(NONE), cut + (len(own) > 1)
        rows += own
    notes = [f"{cut:,} {what} sentences are longer than {request.length:,} tokens: several rows each"] if cut else []
    return rows, notes + ([f"{lost:,} of {words:,} {what} words have no token: not learned"] if lost else [])


def rows_of(
    tokenizer: "Tokenizer", ids: Sequence[int], firsts: Sequence[int], tags: Sequence[int], length: int
) -> "list[Row]":
    """Return the rows of one sentence: pieces of at most ``length`` tokens between the special tokens."""
    from orrery.data.batches.token_windows import IGNORE
    from orrery.data.batches.words import NONE, pieces_of

    marked = tokenizer.around([NONE]).ids
    before, after = marked.index(NONE), len(marked) - marked.index(NONE) - 1
    targets = [IGNORE] * len(ids)
    for place, tag in zip(firsts, tags, strict=True):
        if place != NONE:
            targets[place] = tag
    pieces = [tokens for _, tokens in pieces_of(firsts, len(ids), max(1, length - before - after))]
    return [
        {
            "ids": tokenizer.around(ids[piece.start : piece.stop]).ids,
            "targets": [*[IGNORE] * before, *targets[piece.start : piece.stop], *[IGNORE] * after],
        }
        for piece in pieces
        if len(piece)
    ]
