"""Text: documents of one corpus or of a mixture of several."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from pydantic import model_validator
from pydantic_core import PydanticCustomError

from orrery.data.batches.seeds import derive_seed
from orrery.data.documents import Portion, encode, joined, stream, texts, unknown_share
from orrery.data.records import Document
from orrery.data.sources import BatchRequest, Examples, HeldBack, Source, SourceSettings, register
from orrery.data.splits import split_documents, split_tail
from orrery.errors import DataError, UsageError
from orrery.schema.numbers import AboveZero, Count, Part, Several, Tokens
from orrery.schema.section import Section

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from orrery.data.batches.mixtures import MixtureBatches
    from orrery.data.batches.token_windows import DividedBatches


PAIRS = {"sentence_pairs": "follows", "ordered_pairs": "in_order"}
"""The kinds of batches with two parts of a text in a row, and the label [B] of each."""


class SplitSettings(Section):
    """How validation text is held back: each n-th document by a hash of its name, or the text's tail."""

    every: Several | None = None
    tail: Part | None = None

    @model_validator(mode="after")
    def _one_of_both(self) -> "SplitSettings":
        if (self.every is None) == (self.tail is None):
            raise PydanticCustomError("one_of", "exactly one of every and tail is needed")
        return self


class MixtureSettings(Section):
    """One corpus of a mixture and its weight, a number of any size: only the weights' ratios count.

    ``name`` stands for the corpus in metrics; by default what ``train`` says. ``tokens`` is its size for
    ``orrery plan --data``, which counts the tokens where it is not given; training always counts.
    """

    train: str
    weight: AboveZero
    name: str | None = None
    tokens: Tokens | None = None

    @property
    def label(self) -> str:
        """What the corpus is called in metrics and tables."""
        return self.name or self.train


class TextSettings(SourceSettings):
    """Which text: a file, a folder or a named corpus for training, and its own or a split for validation.

    ``mixture`` names several corpora with weights in the place of ``train``; a split then applies to each.
    ``documents: lines`` makes a document of each line that is not blank, so that an end token stands between them.
    """

    kind: Literal["text"] = "text"
    train: str | None = None
    mixture: tuple[MixtureSettings, ...] | None = None
    val: str | None = None
    split: SplitSettings | None = None
    column: str = "text"
    documents: Literal["whole", "lines"] = "whole"
    invalid: Literal["error", "replace"] = "error"
    skip_bad: Count = 0

    @property
    def parts(self) -> tuple[MixtureSettings, ...]:
        """The corpora to train on; a single one is a mixture of one."""
        return self.mixture if self.mixture is not None else (MixtureSettings(train=str(self.train), weight=1),)

    @property
    def described(self) -> str:
        """The text in a few words: a source, or the sources of a mixture with their weights."""
        return self.train or ", ".join(f"{part.weight:g} x {part.train}" for part in self.parts)

    @property
    def holds_back(self) -> bool:
        """Whether a split or a text of its own is named."""
        return self.val is not None or self.split is not None

    @property
    def counted(self) -> tuple[str, ...]:
        """The corpora of a mixture."""
        return tuple(part.label for part in self.mixture or ())

    @model_validator(mode="after")
    def _train_or_mixture(self) -> "TextSettings":
        if (self.train is None) == (self.mixture is None):
            raise PydanticCustomError("one_of", "exactly one of train and mixture is needed")
        names = [part.label for part in self.parts]
        if not names or len(set(names)) != len(names):
            raise PydanticCustomError("mixture", "a mixture needs corpora with different names")
        return self

    @model_validator(mode="after")
    def _one_validation(self) -> "TextSettings":
        if self.val is not None and self.split is not None:
            raise PydanticCustomError("one_of", "val and split exclude each other")
        return self


@register
class TextSource(Source):
    """Documents: as random crops of all text one after another, whole ones packed into rows, or one a row, padded."""

    Settings = TextSettings
    gives = ("ids", "targets")
    batch_kinds = ("crops", "packed", "padded", "sentence_pairs", "ordered_pairs")
    needs_tokenizer = gives_text = counts_bytes = True

    def __init__(self, portions: Sequence[Portion], held_back: Sequence[Document], mixed: bool = False) -> None:
        self.portions, self.held_back, self.mixed = portions, list(held_back), mixed

    @classmethod
    def fields(cls, batches: str) -> tuple[str, ...]:
        """Return the fields of a kind of batches: pairs of sentences have a label, and no next tokens."""
        return ("ids", "token_types", "real", PAIRS[batches]) if batches in PAIRS else cls.gives

    @classmethod
    def read(cls, settings: TextSettings, known: Mapping[str, list[Document]] | None = None) -> "TextSource":
        """Read the documents to train on, corpus by corpus, and those held back.

        Args:
            settings: which text.
            known: documents of sources that have been read already.

        Raises:
            DataError: a text cannot be read, or a split holds nothing back.
        """
        portions, held_back, known = [], [], known or {}
        for part in settings.parts:
            documents = known[part.train] if part.train in known else read_documents(settings, part.train)
            train, rest = divide(documents, settings.split)
            portions.append(Portion(part.label, part.weight, train))
            held_back += rest
        if settings.split is not None and not any(document.text for document in held_back):
            total = sum(len(portion.documents) for portion in portions)
            raise DataError(
                f"data.split holds nothing back of {total:,} documents: there is no text to validate on",
                "hold back more (data.split.tail cuts each document), give data.val, or leave data.split out",
            )
        held_back = held_back if settings.val is None else read_documents(settings, settings.val)
        return cls(portions, held_back, settings.mixture is not None)

    @property
    def fingerprint(self) -> str:
        """The sha256 of all documents, those held back too."""
        from orrery.data.corpora import corpus_fingerprint

        return corpus_fingerprint([*joined(self.portions), *self.held_back])

    def texts(self) -> Iterable[str]:
        """Return the texts of the training documents."""
        return texts(joined(self.portions))

    def sides(self) -> tuple[Sequence[Any], Sequence[Any]]:
        """Return nothing: documents are no rows, and `remarks` compares them."""
        return (), ()

    def remarks(self) -> Sequence[str]:
        """Say which documents stand on both sides, and how many long lines do."""
        from orrery.data.cleaning.leaks import notes_on_documents

        return notes_on_documents(joined(self.portions), self.held_back) if self.held_back else ()

    def examples(self, request: BatchRequest) -> Examples:
        """Encode the documents and make batches of them; held back are windows over the whole text."""
        if request.kind in PAIRS:
            return self._pairs(request)
        ids = [encode(request.required_tokenizer, portion.documents) for portion in self.portions]
        mixture = self._mixture(request, ids) if self.mixed else None
        train = batches_of(request, ids[0], request.size, request.seed) if mixture is None else mixture
        tokens = {portion.name: sum(map(len, each)) for portion, each in zip(self.portions, ids, strict=True)}
        epochs = None if mixture is None else mixture.epochs
        notes = unknown_share(request.required_tokenizer, [row for rows in ids for row in rows])
        return Examples(train, self._windows(request), tokens, request.size * request.length, epochs, notes)

    def _pairs(self, request: BatchRequest) -> Examples:
        """Return pairs of sentences.

        Raises:
            UsageError: the text is a mixture.
        """
        from orrery.data.batches.sentence_pairs import SentencePairs, sentences

        if self.mixed:
            raise UsageError(f"batches.kind {request.kind} takes one corpus, no mixture", "name data.train")
        tokenizer, (portion,) = request.required_tokenizer, self.portions
        swap, label = request.kind == "ordered_pairs", PAIRS[request.kind]

        def pairs(of: list[list[list[int]]], seed: int) -> SentencePairs:
            return SentencePairs(of, tokenizer, request.length, request.size, seed, label=label, swap=swap)

        ids = sentences(tokenizer, portion.documents)
        train, held_back = pairs(ids, request.seed), None
        if self.held_back:
            others = pairs(sentences(tokenizer, self.held_back), derive_seed("held back"))
            held_back = HeldBack(others, request.limited(-(-len(others.runs) // request.size)))
        rows = [row for document in ids for row in document]
        tokens = {portion.name: sum(map(len, rows))}
        return Examples(train, held_back, tokens, request.size * request.length, notes=unknown_share(tokenizer, rows))

    def _mixture(self, request: BatchRequest, ids: "Sequence[list[NDArray[np.uint32]]]") -> "MixtureBatches":
        """Return batches with rows of each corpus by its weight."""
        from orrery.data.batches.mixtures import Component, MixtureBatches

        components = [
            # Each corpus in an order of its own: the same seed would shuffle two of one length alike.
            Component(
                portion.name,
                batches_of(request, documents, 1, derive_seed(request.seed, "mixture", i)),
                portion.weight,
            )
            for i, (portion, documents) in enumerate(zip(self.portions, ids, strict=True))
        ]
        return MixtureBatches(components, request.size, request.seed)

    def _windows(self, request: BatchRequest) -> HeldBack | None:
        """Return windows over the whole held-back text, or None if there is no such text."""
        from orrery.data.batches.token_windows import SequentialWindows

        if not self.held_back:
            return None
        ids = stream(encode(request.required_tokenizer, self.held_back))
        windows = SequentialWindows(ids, request.length, request.size)
        size = sum(len(document.text.encode()) for document in self.held_back)
        return HeldBack(windows, request.limited(len(windows)), size / (len(ids) - 1))


def batches_of(request: BatchRequest, documents: "list[NDArray[np.uint32]]", size: int, seed: int) -> "DividedBatches":
    """Return the batches of the requested kind."""
    from orrery.data.batches.token_windows import CropBatches, PackedBatches, PaddedBatches

    if request.kind == "packed":
        return PackedBatches(documents, request.length, size, seed)
    if request.kind == "padded":
        return PaddedBatches(documents, size, seed, request.length)
    return CropBatches(stream(documents), request.length, size, seed)


def read_documents(settings: TextSettings, source: str) -> list[Document]:
    """Return the documents of one source."""
    from orrery.data.corpora import read_corpus

    documents = read_corpus(source, column=settings.column, invalid=settings.invalid, skip_bad=settings.skip_bad)
    return list(documents if settings.documents == "whole" else _lines(documents))


def _lines(documents: Iterable[Document]) -> Iterator[Document]:
    """Yield each line that is not blank as a document of its own."""
    for document in documents:
        for number, line in enumerate(document.text.split("\n"), start=1):
            if line.strip():
                yield Document(f"{document.name}:{number}", line)


def divide(documents: list[Document], split: SplitSettings | None) -> tuple[list[Document], list[Document]]:
    """Return the documents to train on and those that a split holds back."""
    if split is None:
        return documents, []
    if split.every is not None:
        return split_documents(documents, split.every)
    assert split.tail is not None
    pairs = [(document.name, split_tail(document.text, split.tail)) for document in documents]
    return [Document(name, head) for name, (head, _) in pairs], [Document(name, tail) for name, (_, tail) in pairs]


def text_of(settings: Any, name: str) -> TextSettings:
    """Return the settings of a recipe's text.

    Raises:
        UsageError: the recipe's data are something else.
    """
    if not isinstance(settings, TextSettings):
        raise UsageError(f"{name}: the recipe's data are no text, and here one is needed", "give data.train")
    return settings
