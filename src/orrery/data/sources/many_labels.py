"""Texts with labels from thousands: labels that are alike stand together in clusters, and clusters are learned."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from pydantic import model_validator
from pydantic_core import PydanticCustomError

from orrery.data.documents import unknown_share
from orrery.data.files import bad_record
from orrery.data.rows.labelled import Labelled, counted
from orrery.data.rows.many_labels import read_many_labels
from orrery.data.sources import BatchRequest, Examples, Source, register
from orrery.data.sources._rows import NAME, RowsSettings, divided, examples_in, fingerprint_of
from orrery.errors import DataError
from orrery.schema.numbers import Count, Positive, Share

if TYPE_CHECKING:
    from orrery.data.batches.padded_rows import Row
    from orrery.data.many_labels.features import SparseRows, TfIdf

SEED = 0
"""Of the tree, where a recipe names none."""
ENCODER = 0.7
"""The encoder's share, where a recipe names none."""


class ManyLabelsSettings(RowsSettings):
    """Which texts, their columns, and how labels are put together.

    ``train`` and ``val`` are each a table, a folder of PECOS (``FOLDER`` or ``FOLDER/tst``) or a file of the
    XMLRepository. ``label`` is a column with one label a text, ``labels`` one with several: a list, or a text cut at
    ``separator``. Labels are alike where their ``texts`` are, or their own ``names``; at most ``cluster`` stand
    together, in a tree drawn with ``tree``. The ``features`` most frequent sequences of up to ``words`` words that
    ``least`` texts have are counted, for the tree and for the ranker. So many times as ``names`` says each label's own
    name is learned from as a text. ``encoder`` is the encoder's share in how likely a cluster is; linear classifiers
    over the words have the rest.
    """

    kind: Literal["many_labels"] = "many_labels"
    text: str | None = None
    label: str | None = None
    labels: str | None = None
    separator: str = ","
    vectors: Literal["texts", "names"] = "texts"
    cluster: Positive = 50
    tree: Count = SEED
    features: Positive = 20_000
    least: Positive = 2
    words: Positive = 1
    names: Count = 0
    encoder: Share = ENCODER

    @model_validator(mode="after")
    def _one_target(self) -> "ManyLabelsSettings":
        if self.label is not None and self.labels is not None:
            raise PydanticCustomError("one_of", "at most one of label and labels can be named")
        return self


@register
class ManyLabelsSource(Source):
    """Texts with labels from thousands; ``labels`` [B] is the number of a cluster that holds one of the text's labels.

    Of a text with labels in several clusters one is drawn each time.
    """

    Settings = ManyLabelsSettings
    gives = ("ids", "real", "labels")
    must_be_read = ("labels",)
    batch_kinds = by_tokens = ("padded",)
    needs_tokenizer = gives_text = True

    def __init__(self, train: Sequence[Labelled], held_back: Sequence[Labelled], settings: ManyLabelsSettings) -> None:
        self.train, self.held_back, self.settings = train, held_back, settings

    @classmethod
    def read(cls, settings: ManyLabelsSettings) -> "ManyLabelsSource":
        """Read the texts. Labels that are held back and never trained on are kept: they are scored as not found.

        Raises:
            DataError: a text has no label, all have the same, or there is one text to learn from.
        """

        def read(source: str) -> Sequence[Labelled]:
            rows = list(read_many_labels(source, settings))
            empty = [row for row in rows if not row.classes]
            if len(empty) > settings.skip_bad:
                raise bad_record(empty[settings.skip_bad].where, "the text has no label")
            return [row for row in rows if row.classes]

        found = cls(*divided(settings, read, lambda rows, every: [row.classes for row in rows]), settings)
        if len(found.train) < 2:
            raise DataError(f"{settings.train}: one text to learn from", "add others: labels are told apart by them")
        if len(found.counts) < 2:
            only = next(iter(found.counts), "")
            raise DataError(
                f"{settings.train}: every text is labelled {only!r}: there is nothing to tell apart", "add others"
            )
        return found

    @cached_property
    def counts(self) -> Mapping[str, int]:
        """How often each label occurs in training, in the order of their numbers."""
        return counted([row.target for row in self.train])

    @cached_property
    def numbers(self) -> Mapping[str, int]:
        """The number of each label."""
        return {name: number for number, name in enumerate(self.counts)}

    @cached_property
    def learned(self) -> Sequence[Labelled]:
        """What is learned from: the training texts, and behind them the names of labels, as often as is asked for."""
        names = [Labelled(f"the label {name!r:.40}", name, None, (name,)) for name in self.counts]
        return [*self.train, *names * self.settings.names]

    @cached_property
    def own(self) -> Sequence[Sequence[int]]:
        """The numbers of the labels of each text that is learned from."""
        return [[self.numbers[name] for name in row.classes] for row in self.learned]

    @cached_property
    def features(self) -> "TfIdf":
        """What is counted of a text."""
        from orrery.data.many_labels.features import TfIdf

        settings = self.settings
        return TfIdf.learned(list(self.texts()), settings.features, settings.least, settings.words)

    @cached_property
    def rows(self) -> "SparseRows":
        """The features of the texts that are learned from."""
        return self.features.rows(self.texts())

    @cached_property
    def cluster_of(self) -> Sequence[int]:
        """The cluster of each label."""
        from orrery.data.many_labels.features import TfIdf
        from orrery.data.many_labels.tree import clusters, label_vectors

        names, seed = list(self.counts), self.settings.tree
        if self.settings.vectors == "texts":
            vectors = label_vectors(self.rows, self.own, len(names), seed)
        else:
            features = TfIdf.learned(names, self.settings.features, 1, 2)
            vectors = label_vectors(features.rows(names), [[n] for n in range(len(names))], len(names), seed)
        found: list[int] = clusters(vectors, min(self.settings.cluster, -(-len(names) // 2)), seed).tolist()
        return found

    @property
    def labels(self) -> Mapping[str, int]:
        """How many labels of texts that are learned from each cluster holds."""
        sizes = dict.fromkeys(map(str, range(max(self.cluster_of) + 1)), 0)
        for count, cluster in zip(self.counts.values(), self.cluster_of, strict=True):
            sizes[str(cluster)] += count + self.settings.names
        return sizes

    def remarks(self) -> Sequence[str]:
        """Say how many labels there are, how many are rare, and which are held back alone."""
        once = sum(count == 1 for count in self.counts.values())
        held = {name for row in self.held_back for name in row.classes}
        notes = [
            f"{len(self.counts):,} labels in {len(self.labels):,} clusters, {once:,} of one training text; "
            f"{sum(self.counts.values()) / len(self.train):.1f} labels a text"
        ]
        if unseen := held - self.counts.keys():
            notes.append(f"{len(unseen):,} labels are held back and never trained on: they cannot be found")
        return [*notes, *super().remarks()]

    @property
    def fingerprint(self) -> str:
        """The sha256 of all texts and their labels in their order, those held back too."""
        return fingerprint_of((row.text, row.target) for row in (*self.train, *self.held_back))

    def texts(self) -> Sequence[str]:
        """Return the texts that are learned from."""
        return [row.text for row in self.learned]

    def examples(self, request: BatchRequest) -> Examples:
        """Encode the texts, cut what is too long and say so, and make batches."""
        from orrery.data.batches.drawn_labels import DrawnInTurn, DrawnLabels
        from orrery.data.batches.padded_rows import PaddedRows, SequentialRows

        train, notes = _encoded(request, self.learned, "training texts")
        known = [row for row in self.held_back if any(name in self.numbers for name in row.classes)]
        others, more = _encoded(request, known, "texts held back")
        rows = PaddedRows(train, request.size, request.seed, request.tokens)
        drawn = DrawnLabels(rows, [self._clusters(row) for row in self.learned], request.seed)
        windows = None
        if others:
            in_turn = SequentialRows(others, request.size, request.tokens)
            windows = DrawnInTurn(in_turn, [self._clusters(row) for row in known], request.seed)
        unknown = unknown_share(request.required_tokenizer, [row["ids"] for row in train])
        tokens = int(rows.lengths.sum())
        return examples_in(request, drawn, windows, tokens, (*notes, *more, *unknown), NAME)

    def _clusters(self, row: Labelled) -> list[int]:
        """Return the clusters of the labels of a text that are known."""
        return sorted({self.cluster_of[self.numbers[name]] for name in row.classes if name in self.numbers})


def _encoded(request: BatchRequest, rows: Sequence[Labelled], what: str) -> "tuple[list[Row], list[str]]":
    """Return rows with their places, and what to say: how many texts were cut."""
    from orrery.data.batches.drawn_labels import PLACE
    from orrery.data.batches.framing import cut_note, fitted

    encoded: list[Row] = []
    cut = 0
    for place, first in enumerate(request.required_tokenizer.encode_batch([row.text for row in rows])):
        framed, shortened = fitted(request.required_tokenizer, first, None, request.length)
        cut += shortened
        encoded.append({"ids": framed.ids, PLACE: place})
    return encoded, cut_note(cut, len(rows), what, request.length)
