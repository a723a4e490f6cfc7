"""Matches: two texts that belong together, in batches where each has to find its own among the others."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from orrery.data.documents import unknown_share
from orrery.data.records import Pair
from orrery.data.rows.labelled import PAIRS
from orrery.data.rows.pair_columns import KNOWN, find_pair_columns, read_column_pairs, spread
from orrery.data.sources import BatchRequest, Examples, Source, register
from orrery.data.sources._rows import RowsSettings, divided, fingerprint_of
from orrery.errors import UsageError

if TYPE_CHECKING:
    from orrery.data.batches.padded_rows import Row


class MatchSettings(RowsSettings):
    """Which rows, and the columns of the two texts; what is not named is found by its name."""

    kind: Literal["matches"] = "matches"
    text: str | None = None
    pair: str | None = None


@register
class MatchSource(Source):
    """Texts that belong together; ``batches.size`` counts pairs, and a batch has both texts of each as rows, [2B].

    ``group`` [2B] is the same for rows that belong together: two texts of a pair, and all pairs that share a text.
    """

    Settings = MatchSettings
    gives = ("ids", "real", "group")
    must_be_read = ("group",)
    batch_kinds = ("matches",)
    needs_tokenizer = gives_text = True

    def __init__(self, train: Sequence[Pair], held_back: Sequence[Pair]) -> None:
        self.train, self.held_back = train, held_back

    @classmethod
    def read(cls, settings: MatchSettings) -> "MatchSource":
        """Read the rows.

        Raises:
            DataError: a row lacks one of its texts, or there is none.
        """

        def read(source: str) -> Iterable[Pair]:
            named = {"text": settings.text, "pair": settings.pair}
            columns = find_pair_columns(source, named, (*PAIRS, *KNOWN), ("--data.text", "--data.pair"))
            how: dict[str, Any] = {"invalid": settings.invalid, "skip_bad": settings.skip_bad}
            return read_column_pairs(source, columns, **how)

        train, held_back = divided(settings, read)
        return cls(spread(train), held_back)

    @property
    def fingerprint(self) -> str:
        """The sha256 of all rows in their order, those held back too."""
        return fingerprint_of((pair.source, pair.target) for pair in (*self.train, *self.held_back))

    def texts(self) -> Iterable[str]:
        """Return both texts of the training rows."""
        return (text for pair in self.train for text in (pair.source, pair.target))

    def examples(self, request: BatchRequest) -> Examples:
        """Encode the texts, cut what is too long and say so, and make batches.

        Raises:
            UsageError: a batch of one pair, which has nothing to tell it from.
        """
        from orrery.data.batches.matches import MatchBatches
        from orrery.data.sources._rows import examples_of

        if request.size < 2:
            raise UsageError("batches.size 1: a pair alone has nothing to be told from", "give a size of 2 or more")
        train, notes = encoded(request, self.train, "training texts")
        others, more = encoded(request, self.held_back, "texts held back")
        unknown = unknown_share(request.required_tokenizer, [row[side] for row in train for side in ("ids", "second")])
        examples = examples_of(request, train, others, (*notes, *more, *unknown))
        seconds = sum(row["second_length"] for row in train)
        windows = examples.held_back and replace(examples.held_back, source=MatchBatches(examples.held_back.source))
        return replace(
            examples,
            train=MatchBatches(examples.train),
            held_back=windows,
            tokens={name: tokens + seconds for name, tokens in examples.tokens.items()},
            batch_tokens=examples.batch_tokens + round(seconds / len(train) * request.size),
        )


def encoded(request: BatchRequest, pairs: Sequence[Pair], what: str) -> "tuple[list[Row], list[str]]":
    """Return pairs as rows of fields, and what to say: how many texts were cut."""
    from orrery.data.batches.framing import cut_note, fitted

    tokenizer = request.required_tokenizer
    firsts = tokenizer.encode_batch([pair.source for pair in pairs])
    seconds = tokenizer.encode_batch([pair.target for pair in pairs])
    fields_of_rows: list[Row] = []
    cut = 0
    for first, second, group in zip(firsts, seconds, groups(pairs), strict=True):
        (one, shortened), (other, too) = (fitted(tokenizer, ids, None, request.length) for ids in (first, second))
        cut += shortened + too
        fields_of_rows.append({"ids": one.ids, "second": other.ids, "second_length": len(other.ids), "group": group})
    return fields_of_rows, cut_note(cut, 2 * len(pairs), what, request.length)


def groups(pairs: Sequence[Pair]) -> list[int]:
    """Return a number for each pair, the same for pairs that share a text, directly or through others."""
    home: dict[str, str] = {}

    def root(text: str) -> str:
        home.setdefault(text, text)
        while home[text] != text:
            home[text] = home[home[text]]
            text = home[text]
        return text

    for pair in pairs:
        home[root(pair.target)] = root(pair.source)
    numbers: dict[str, int] = {}
    return [numbers.setdefault(root(pair.source), len(numbers)) for pair in pairs]
