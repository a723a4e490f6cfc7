"""Matches: two texts that belong together, in batches where each has to find its own among the others."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from orrery.data.documents import unknown_share
from orrery.data.readers.columns import truth_of
from orrery.data.records import Pair
from orrery.data.rows.labelled import PAIRS
from orrery.data.rows.pair_columns import KNOWN, find_pair_columns, names_of_columns, read_column_pairs, spread
from orrery.data.sources import BatchRequest, Examples, Source, register
from orrery.data.sources._rows import RowsSettings, divided, fingerprint_of
from orrery.errors import DataError, UsageError

if TYPE_CHECKING:
    from orrery.data.batches.padded_rows import Row


GRADES = (
    "label", "labels", "score", "scores", "similarity", "similarity_score", "relevance", "grade", "gold_label",
    "is_duplicate",
)  # fmt: skip
"""Names of a column that says how far two texts belong together."""
NEGATIVES = ("negative", "negatives", "hard_negative", "neg")
"""Names of a column with a text that does not belong to the first."""


class MatchSettings(RowsSettings):
    """Which rows, and the columns of the two texts; what is not named is found by its name.

    Of a column that says 1 or 0 of each row (``label``, ``is_duplicate``, ...) the rows of 1 are learnt; other grades
    are refused, as each row is learnt as two texts that belong together.
    """

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

    def __init__(self, train: Sequence[Pair], held_back: Sequence[Pair], notes: Sequence[str] = ()) -> None:
        self.train, self.held_back, self.notes = train, held_back, notes

    @classmethod
    def read(cls, settings: MatchSettings) -> "MatchSource":
        """Read the rows.

        Raises:
            DataError: a row lacks one of its texts, or there is none.
        """
        notes: list[str] = []

        def read(source: str) -> Iterable[Pair]:
            named = {"text": settings.text, "pair": settings.pair}
            columns = find_pair_columns(source, named, (*PAIRS, *KNOWN), ("--data.text", "--data.pair"))
            how: dict[str, Any] = {"invalid": settings.invalid, "skip_bad": settings.skip_bad}
            names = [name for name in names_of_columns(source, columns, **how) if name not in columns]
            graded = next((name for name in GRADES if name in names), None)
            apart: list[str] = []
            judged = (graded, _judge(graded, apart)) if graded else None
            yield from read_column_pairs(source, columns, graded=judged, **how)
            notes.extend([f"{source}: {len(apart):,} rows left out, whose {graded} is 0"] if apart else [])
            unread = [name for name in NEGATIVES if name in names]
            notes.extend(f"{source}: {name} is not read: the other texts of a batch do not belong" for name in unread)

        train, held_back = divided(settings, read)
        return cls(spread(train), held_back, tuple(notes))

    def remarks(self) -> Sequence[str]:
        """Say which rows are left out, which column is not read, and what stands on both sides."""
        return [*self.notes, *super().remarks()]

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


def _judge(column: str, apart: list[str]) -> Callable[[str, Any], bool]:
    """Return what says whether two texts belong together; the places of those that do not are put into ``apart``.

    Raises:
        DataError: a grade is neither 1 nor 0.
    """

    def together(where: str, value: Any) -> bool:
        said = truth_of(value)
        if said is None:
            message = (
                f"{where}: {column} is {str(value)[:40]!r}, and every row is learnt as two texts that belong together"
            )
            hint = "keep the rows that do and take the column away, or write 1 or 0 there; a number for two texts is "
            raise DataError(message, f"{hint}learnt by `orrery finetune regression`")
        if not said:
            apart.append(where)
        return said

    return together


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
