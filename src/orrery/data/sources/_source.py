"""What a data source is: it reads once, may give text to train a tokenizer on, and makes batches."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable

from orrery.schema.registry import Registry
from orrery.schema.section import Section

if TYPE_CHECKING:
    from torch import Tensor

    from orrery.data.pictures.preparing import Preparation
    from orrery.data.stratified import Parted
    from orrery.text.chat.render import ChatTemplate
    from orrery.text.tokenizer import Tokenizer


@runtime_checkable
class BatchSource(Protocol):
    """Where batches come from: a pure function of the step, or a source whose state the checkpoint saves."""

    def batch(self, step: int) -> "Mapping[str, Tensor]":
        """Return the global batch of ``step`` (from 0): every rank and every resume sees the same."""
        ...

    def state(self) -> dict[str, Any]:
        """Return what must be saved to continue; empty for a pure function of the step."""
        ...

    def restore(self, state: dict[str, Any]) -> None:
        """Take back what ``state`` returned."""
        ...


@runtime_checkable
class DividedSource(Protocol):
    """A source of batches of ``size`` rows, which knows their lengths and targets unread: some can be read alone."""

    size: int

    def share(self, step: int, rows: range) -> "Mapping[str, Tensor]":
        """Return the global batch of ``step`` with the tokens of ``rows``; others are 0 or ignored."""
        ...


@runtime_checkable
class AnsweredSource(Protocol):
    """A source of batches that the model of the run writes: it is given what writes, once, as the run begins."""

    def begin(self, writer: Any) -> None:
        """Take what has the model write; it writes as the model is when it is asked."""
        ...


class SourceSettings(Section):
    """What the section ``data`` of a recipe says of any source."""

    kind: str

    @property
    def described(self) -> str:
        """The data in a few words, for model cards."""
        return self.kind

    @property
    def holds_back(self) -> bool:
        """Whether examples are held back to measure on."""
        return False

    @property
    def counted(self) -> tuple[str, ...]:
        """The names of the parts whose epochs are counted, a metric ``epochs/NAME`` each."""
        return ()


@dataclass(frozen=True)
class BatchRequest:
    """What a run asks of its data.

    Attributes:
        kind: the kind of batches, one of the source's ``batch_kinds``.
        length: tokens of a row at most.
        size: rows of a batch; where ``tokens`` is given, at most.
        seed: of the run: the order of examples follows from it and the step.
        tokenizer: turns text into ids; ``None`` for a source that needs none.
        start: the token that a target begins with, where the model writes beside a source.
        labels: the names of the labels in the order of their numbers, where the head that is trained has names.
        token_types: how many token types the model tells apart.
        evaluation_batches: the batches to measure on at most.
        tokens: positions of a batch at most, padding among them, of a source that can cut ``by_tokens``.
        chat: the chat templates of the run by name, see ``Source.chat``.
        pictures: how pictures become what the model reads, and the channels, rows and columns of that.
    """

    kind: str
    length: int
    size: int
    seed: int
    tokenizer: "Tokenizer | None" = None
    start: int | None = None
    labels: Sequence[str] = ()
    token_types: int = 1
    evaluation_batches: int | None = None
    tokens: int | None = None
    chat: Mapping[str, str] = field(default_factory=dict)
    pictures: "tuple[Preparation, tuple[int, int, int]] | None" = None

    @property
    def template(self) -> "ChatTemplate":
        """The format in which conversations are rendered.

        Raises:
            UsageError: the run has none.
        """
        from orrery.text.chat.of_run import template_of_run

        return template_of_run(self.chat, self.required_tokenizer)

    @property
    def required_tokenizer(self) -> "Tokenizer":
        """The tokenizer, of a source that needs one."""
        assert self.tokenizer is not None
        return self.tokenizer

    def limited(self, batches: int) -> int:
        """Return how many of ``batches`` batches held back are measured."""
        return min(batches, self.evaluation_batches or batches)


@dataclass(frozen=True)
class HeldBack:
    """Examples that are not trained on: ``batches`` batches from 0 on.

    ``bytes_per_token`` is the text's bytes over its tokens, ``None`` where the loss is not one of text.
    """

    source: BatchSource
    batches: int
    bytes_per_token: float | None = None


@dataclass(frozen=True)
class Examples:
    """The batches that a run learns from, and those held back.

    ``tokens`` counts what is learned in an epoch, part by part; ``batch_tokens`` those of a batch, on average at most;
    ``epochs(step)`` says of each part that is counted how often it was gone through by then; ``notes`` are said.
    """

    train: BatchSource
    held_back: HeldBack | None
    tokens: Mapping[str, int]
    batch_tokens: int
    epochs: Callable[[int], Mapping[str, float]] | None = None
    notes: Sequence[str] = ()


class Source(ABC):
    """Examples to learn from, read once.

    One file each, ``data/sources/NAME.py``; a program defines its own and makes it known with ``register``. Torch is
    imported where it is used, so that a recipe is read without it.

    Attributes:
        Settings: the section ``data`` of a recipe; the default of ``kind`` is the source's name.
        gives: the fields of its batches.
        must_be_read: those among them that an objective may not pass over.
        batch_kinds: the kinds of batches that it makes; the first where a recipe names none.
        by_tokens: those among them whose batches can be of so many tokens, in the place of so many rows.
        needs_tokenizer: whether it turns text into ids.
        gives_text: whether a tokenizer can be trained on it.
        counts_bytes: whether the bytes of the text held back are known, so that bits a byte can be measured.
    """

    Settings: ClassVar[type[SourceSettings]]
    gives: ClassVar[tuple[str, ...]]
    must_be_read: ClassVar[tuple[str, ...]] = ()
    batch_kinds: ClassVar[tuple[str, ...]] = ("rows",)
    by_tokens: ClassVar[tuple[str, ...]] = ()
    needs_tokenizer: ClassVar[bool] = False
    gives_text: ClassVar[bool] = False
    counts_bytes: ClassVar[bool] = False

    @classmethod
    def fields(cls, batches: str) -> tuple[str, ...]:
        """Return the fields that a kind of batches has: ``gives``, unless a source has kinds that differ."""
        return cls.gives

    @classmethod
    @abstractmethod
    def read(cls, settings: Any) -> "Source":
        """Read or open what settings name.

        Raises:
            DataError: it is missing, empty or damaged.
        """

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """What a resumed run must find again: a digest of the data."""

    @property
    def labels(self) -> Mapping[str, int]:
        """How often each label occurs in training, in the order of their numbers; nothing where there are none."""
        return {}

    @property
    def targets(self) -> Sequence[float]:
        """The numbers to be learned, in their own unit; nothing where there are none."""
        return ()

    def texts(self) -> Iterable[str]:
        """Return the texts of the training examples, for a tokenizer to be trained on."""
        return ()

    def sides(self) -> "tuple[Sequence[Parted], Sequence[Parted]]":
        """Return the rows that are trained on and those held back, so that what stands on both sides can be said.

        These are ``train`` and ``held_back``, where a source has them and their rows say what their texts are.
        """
        from orrery.data.stratified import Parted

        sides = getattr(self, "train", ()), getattr(self, "held_back", ())
        return sides if all(isinstance(row, Parted) for rows in sides for row in rows[:1]) else ((), ())

    def remarks(self) -> Sequence[str]:
        """Say before training what is odd about the data: what stands on both sides."""
        from orrery.data.cleaning.leaks import shared

        return shared(*self.sides()).notes()

    def chat(self, base: Mapping[str, str]) -> Mapping[str, str]:
        """Return the chat templates by name that the trained model has: those of the model that the run begins from.

        A source that renders conversations names the one that it does so with, ``default``; the control tokens of
        Orrery's own formats are then in the tokenizer.
        """
        return base

    @abstractmethod
    def examples(self, request: BatchRequest) -> Examples:
        """Return the batches that a run asks for.

        Raises:
            DataError: there is too little data for them.
        """


SOURCES: Registry[Source] = Registry("data source", "orrery.data.sources")
register = SOURCES.register
