"""Pairs: each target beside the source that it is written from."""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from orrery.data.documents import unknown_share
from orrery.data.readers.columns import check_columns
from orrery.data.records import Document, Pair
from orrery.data.rows.pair_columns import (
    files_by_language,
    find_pair_columns,
    names_of_columns,
    read_column_pairs,
    spread,
)
from orrery.data.sets import is_parallel
from orrery.data.sources import BatchRequest, Examples, Source, register
from orrery.data.sources._rows import HeldBackSettings, examples_in, nothing, parted
from orrery.errors import DataError
from orrery.schema.numbers import Fraction
from orrery.schema.section import Section

if TYPE_CHECKING:
    from orrery.text.tokenizer import Tokenizer

Ids = tuple[list[int], list[int]]
"""The token numbers of a source and its target."""
NAME = "pairs"
"""What the pairs are called in metrics and tables."""


class FilesSettings(Section):
    """Parallel text: two files, line n of ``target`` the translation of line n of ``source``."""

    source: str
    target: str


class ColumnsSettings(Section):
    """Columns of a table whose rows are pairs; one that is not named is found by its name."""

    source: str | None = None
    target: str | None = None


class PairSettings(HeldBackSettings):
    """Which pairs: two files, a table, or a named set ("multi30k-en-de/train"), for training and for validation.

    ``split`` holds back each n-th pair where there are none for validation. A pair that is longer than a row is left
    out, or (``long: cut``) loses the end of its source, as a text does that is summarised. ``bpe_dropout`` leaves out
    that share of a BPE's merges, others each time a pair is trained on (Provilkov et al. 2020).
    """

    kind: Literal["pairs"] = "pairs"
    pairs: FilesSettings | str
    val: FilesSettings | str | None = None
    long: Literal["leave_out", "cut"] = "leave_out"
    columns: ColumnsSettings = Field(default_factory=ColumnsSettings)
    bpe_dropout: Fraction = 0.0

    @model_validator(mode="after")
    def _columns_of_a_table(self) -> "PairSettings":
        if self.columns != ColumnsSettings() and not any(isinstance(pairs, str) for pairs in (self.pairs, self.val)):
            raise PydanticCustomError("columns", "columns are those of a table, and pairs are two files")
        return self

    @property
    def described(self) -> str:
        """The pairs in a few words."""
        return self.pairs if isinstance(self.pairs, str) else f"{self.pairs.source} and {self.pairs.target}"

    @property
    def counted(self) -> tuple[str, ...]:
        """The pairs."""
        return (NAME,)


@register
class PairSource(Source):
    """Pairs of texts, each batch of pairs of like length, padded to its longest."""

    Settings = PairSettings
    gives = ("source", "source_real", "ids", "targets")
    must_be_read = ("source",)
    batch_kinds = ("pairs",)
    by_tokens = batch_kinds
    needs_tokenizer = gives_text = True

    def __init__(
        self,
        pairs: Sequence[Pair],
        held_back: Sequence[Pair],
        cuts: bool = False,
        bpe_dropout: float = 0.0,
        notes: Sequence[str] = (),
    ) -> None:
        self.pairs, self.held_back, self.cuts, self.bpe_dropout, self.notes = pairs, held_back, cuts, bpe_dropout, notes

    @classmethod
    def read(cls, settings: PairSettings) -> "PairSource":
        """Read the pairs; each target that a source has is trained on.

        Raises:
            DataError: there is none, or a row has no source or no target.
        """
        notes: dict[str, None] = {}
        train = _pairs(settings, settings.pairs, notes)
        held_back: list[Pair] = []
        if settings.split is not None:
            train, held_back = parted(train, settings.split)
            if not held_back:
                raise nothing(settings.described, settings, len(train))
        held_back += [] if settings.val is None else _pairs(settings, settings.val, notes)
        return cls(spread(train), held_back, settings.long == "cut", settings.bpe_dropout, tuple(notes))

    def remarks(self) -> Sequence[str]:
        """Say which columns are read, and what stands on both sides."""
        return [*self.notes, *super().remarks()]

    @property
    def fingerprint(self) -> str:
        """The sha256 of all pairs in their order, those held back too."""
        from orrery.data.corpora import corpus_fingerprint

        return corpus_fingerprint(
            Document(f"{pair.line} {side}", text)
            for pair in (*self.pairs, *self.held_back)
            for side, text in (
                ("source", pair.source),
                ("target", pair.target),
                *(("reference", text) for text in pair.references),
            )
        )

    @property
    def train(self) -> Sequence[Pair]:
        """The pairs to train on."""
        return self.pairs

    def texts(self) -> Iterable[str]:
        """Return both sides of the training pairs: one tokenizer reads and writes."""
        return (text for pair in self.pairs for text in (pair.source, pair.target))

    def examples(self, request: BatchRequest) -> Examples:
        """Encode both sides, leave out what is too long and say so, and make batches."""
        from orrery.data.batches.pairs import Ends, PairBatches, SequentialPairs

        end = request.required_tokenizer.special("end")
        ends = Ends(end if request.start is None else request.start, end)
        pairs, places, notes = self._rows(request, self.pairs, "training")
        others, _, more = self._rows(request, self.held_back, "validation")
        redraw = self._redraw(request, pairs, places) if self.bpe_dropout else None
        source = PairBatches(pairs, ends, request.size, request.seed, request.tokens, redraw)
        tokens = sum(len(target) + 1 for _, target in pairs)
        windows = SequentialPairs(others, ends, request.size, request.tokens) if others else None
        unknown = unknown_share(request.required_tokenizer, [row for pair in pairs for row in pair])
        return examples_in(request, source, windows, tokens, (*notes, *more, *unknown), NAME)

    def _rows(self, request: BatchRequest, pairs: Sequence[Pair], what: str) -> tuple[list[Ids], list[int], list[str]]:
        """Return pairs as ids that fit into rows, their numbers among all pairs, and what to say."""
        tokenizer = request.required_tokenizer
        encoded = encode(tokenizer, pairs)
        shortened, notes = cut(tokenizer, pairs, encoded, request.length, what) if self.cuts else (encoded, [])
        places, more = short_enough(shortened, request.length, what)
        return [shortened[place] for place in places], places, [*notes, *more]

    def _redraw(self, request: BatchRequest, pairs: Sequence[Ids], places: Sequence[int]) -> Callable[[int, int], Ids]:
        """Return what cuts a pair again for a step; one that would not fit into a row then stays as it is."""
        from orrery.data.batches.recutting import Recutter, with_dropout

        tokenizer, length = request.required_tokenizer, request.length
        sampler = with_dropout(tokenizer, self.bpe_dropout, "data.bpe_dropout")
        sources = Recutter(sampler, [self.pairs[place].source for place in places], request.seed)
        targets = Recutter(sampler, [self.pairs[place].target for place in places], request.seed + 1)

        def redraw(number: int, step: int) -> Ids:
            source = tokenizer.around(sources.ids(number, step)).ids
            target = without_end(tokenizer, tokenizer.around(targets.ids(number, step)).ids)
            return (source, target) if fits((source, target), length) else pairs[number]

        return redraw


def cut(
    tokenizer: "Tokenizer",
    pairs: Sequence[Pair],
    encoded: Sequence[tuple[list[int], list[int]]],
    length: int,
    what: str,
) -> tuple[list[tuple[list[int], list[int]]], list[str]]:
    """Return pairs whose sources have at most ``length`` tokens, and what to say."""
    from orrery.data.batches.framing import cut_note, fitted

    long = {n for n, (source, _) in enumerate(encoded) if len(source) > length}
    fitting = [
        (fitted(tokenizer, tokenizer.encode(pairs[n].source), None, length)[0].ids if n in long else source, target)
        for n, (source, target) in enumerate(encoded)
    ]
    return fitting, cut_note(len(long), len(pairs), f"{what} sources", length)


def _pairs(settings: PairSettings, pairs: FilesSettings | str, notes: dict[str, None]) -> list[Pair]:
    """Return the pairs of two files, of a table's columns, or of a named set; which columns is put into ``notes``."""
    from orrery.data.corpora import read_pairs

    how: dict[str, Any] = {"invalid": settings.invalid, "skip_bad": settings.skip_bad}
    if isinstance(pairs, str) and (files := files_by_language(pairs)):
        source, target = find_pair_columns(pairs, settings.columns.model_dump())
        check_columns(pairs, files, (source, target))
        notes[f"files: {files[target].name} is written from {files[source].name}"] = None
        pairs = FilesSettings(source=str(files[source]), target=str(files[target]))
    if isinstance(pairs, FilesSettings):
        name, pairs_read = f"{pairs.source} and {pairs.target}", list(read_pairs(pairs.source, pairs.target, **how))
    elif is_parallel(pairs) or is_parallel(pairs.partition("/")[0]):
        name, pairs_read = pairs, list(read_pairs(pairs, **how))
    else:
        columns = find_pair_columns(pairs, settings.columns.model_dump())
        unread = [name for name in names_of_columns(pairs, columns, **how) if name not in columns]
        more = f"; not read: {', '.join(unread)[:200]}" if unread else ""
        notes[f"columns: {columns[1]} is written from {columns[0]}{more}"] = None
        name, pairs_read = pairs, list(read_column_pairs(pairs, columns, **how))
    if not pairs_read:
        raise DataError(f"{name}: 0 pairs", "give two files of as many lines, or a table with a column for each side")
    return pairs_read


def encode(tokenizer: "Tokenizer", pairs: Sequence[Pair]) -> list[tuple[list[int], list[int]]]:
    """Return the ids of both sides with the special tokens of the family, the targets without start or end."""
    sources = tokenizer.encode_batch([pair.source for pair in pairs])
    targets = tokenizer.encode_batch([pair.target for pair in pairs])
    return [
        (tokenizer.around(source).ids, without_end(tokenizer, tokenizer.around(target).ids))
        for source, target in zip(sources, targets, strict=True)
    ]


def without_end(tokenizer: "Tokenizer", ids: list[int]) -> list[int]:
    """Return the ids of a target without the end token, which every target gets, that the family puts behind a text."""
    return ids[:-1] if ids and ids[-1] == tokenizer.special("end") else ids


def fits(pair: Ids, length: int) -> bool:
    """Whether a source, and a target with its end token, have at most ``length`` tokens."""
    source, target = pair
    return len(source) <= length and len(target) < length


def short_enough(pairs: Sequence[Ids], length: int, what: str) -> tuple[list[int], list[str]]:
    """Return the numbers of the pairs that fit into rows of ``length`` tokens, and what to say.

    Raises:
        DataError: there were pairs, and none is left.
    """
    kept = [number for number, pair in enumerate(pairs) if fits(pair, length)]
    out = len(pairs) - len(kept)
    if pairs and not kept:
        raise DataError(f"every {what} pair is longer than {length:,} tokens", "raise batches.length")
    if not out:
        return kept, []
    return kept, [f"{out:,} of {len(pairs):,} {what} pairs left out: longer than batches.length, {length:,} tokens"]
