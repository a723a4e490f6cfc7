"""Conversations: rendered with the run's chat template, and what the assistant wrote is learnt."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from orrery.data.rows.conversation_notes import said_of, told_of_repeated
from orrery.data.rows.conversations import Conversation, Shape, read_conversations, refuse_untaught
from orrery.data.sources import BatchRequest, Examples, HeldBack, Source, register
from orrery.data.sources._rows import NAME, BySettings, RowsSettings, divided, examples_of, fingerprint_of
from orrery.errors import DataError
from orrery.text.chat.messages import text_of
from orrery.text.chat.of_run import templates_of_run

if TYPE_CHECKING:
    from orrery.data.batches.padded_rows import Row
    from orrery.text.chat.spans.encoding import Rendered


ENDLESS = (
    "warning: no control token ends a reply in this chat template, as far as the tokenizer knows: answers may not stop"
)


class ConversationSettings(RowsSettings):
    """Which conversations, in a shape that is found by their columns (`orrery.data.rows.conversations`) or named.

    They are rendered with ``template``, one of Orrery's formats or a Jinja file; by default that of the model which
    the run begins from, else chatml. ``system`` is the system message of those that have none. All replies of the
    assistant are learnt, or the ``last`` alone. What is longer than a row is refused, or loses its end (``cut``), or is
    left out. ``more`` are further files and sets, which are read behind ``train`` and divided with it.
    """

    kind: Literal["conversations"] = "conversations"
    more: tuple[str, ...] = ()
    split: BySettings | None = None  # type: ignore[assignment]  # by rows or by prompts
    shape: Shape | None = None
    column: str | None = None
    template: str | None = None
    system: str | None = None
    replies: Literal["all", "last"] = "all"
    long: Literal["refuse", "cut", "leave_out"] = "refuse"

    @property
    def described(self) -> str:
        """The names of the files and sets."""
        return ", ".join((self.train, *self.more))


@register
class ConversationSource(Source):
    """Conversations; ``targets`` [B, L] has the next token where the assistant wrote it, and -100 elsewhere.

    Where some replies count in part, training batches have ``weights`` [B, L] too: how much each target counts.

    A batch of kind ``padded`` has rows of like length, one of kind ``packed`` several conversations a row, with
    ``documents`` and ``positions``.
    """

    Settings = ConversationSettings
    gives = ("ids", "targets", "real")
    batch_kinds = ("padded", "packed")
    by_tokens = ("padded",)
    needs_tokenizer = gives_text = True

    def __init__(
        self, train: Sequence[Conversation], held_back: Sequence[Conversation], settings: ConversationSettings
    ) -> None:
        self.train, self.held_back, self.settings = train, held_back, settings

    @classmethod
    def fields(cls, batches: str) -> tuple[str, ...]:
        """Return the fields of a kind of batches."""
        return ("ids", "targets", "documents", "positions") if batches == "packed" else cls.gives

    @classmethod
    def read(cls, settings: ConversationSettings) -> "ConversationSource":
        """Read the conversations.

        Raises:
            DataError: one has no reply to learn, or is none.
        """

        def read(source: str) -> Iterable[Conversation]:
            how: dict[str, Any] = {"shape": settings.shape, "column": settings.column, "system": settings.system}
            how |= {"invalid": settings.invalid, "skip_bad": settings.skip_bad}
            sources = (source, *settings.more) if source == settings.train else (source,)
            check = partial(refuse_untaught, last=settings.replies == "last")
            for each in sources:
                yield from read_conversations(each, check=check, **how)

        return cls(*divided(settings, read), settings)

    @property
    def fingerprint(self) -> str:
        """The sha256 of all conversations in their order, those held back too."""
        return fingerprint_of((each.messages, sorted(each.beside.items())) for each in (*self.train, *self.held_back))

    def texts(self) -> Iterable[str]:
        """Return what is said in the training conversations."""
        return (text_of(message) for each in self.train for message in each.messages)

    def chat(self, base: Mapping[str, str]) -> Mapping[str, str]:
        """Return the templates of the base, ``default`` the one that the conversations are rendered with."""
        return templates_of_run(self.settings.template, base)

    def examples(self, request: BatchRequest) -> Examples:
        """Render the conversations, deal with those that are too long, and make batches."""
        fitting, notes = self._rendered(request, self.train, "training")
        others, more = self._rendered(request, self.held_back, "held-back")
        train, held_back = rows_of(fitting, any(each.weights for each in fitting)), rows_of(others, in_part=False)
        if not train:
            raise DataError("every training conversation is left out", "raise batches.length")
        notes += [] if request.template.end else [ENDLESS]
        apart = [*notes, *more, *told_of_repeated(self.train)]
        return (
            packed_examples(request, train, held_back, apart)
            if request.kind == "packed"
            else examples_of(request, train, held_back, apart)
        )

    def _rendered(
        self, request: BatchRequest, conversations: Sequence[Conversation], what: str
    ) -> "tuple[list[Rendered], list[str]]":
        """Return the conversations that fit as a model reads them, and what to say of them."""
        from orrery.data.batches.rendering import ends_with_end, render

        template, settings = request.template, self.settings
        rendered_rows = [(each, render(template, each, settings.replies)) for each in conversations]
        fitting, notes = fit(rendered_rows, request.length, settings.long, what)
        ended = sum(ends_with_end(template, each) for each in fitting)
        return fitting, [*said_of(conversations, fitting, ended, what), *notes]


def rows_of(rendered: "Sequence[Rendered]", in_part: bool) -> "list[Row]":
    """Return the rows of conversations, with ``weights`` where some replies count in part."""
    from orrery.data.batches.rendering import targets_of, weights_of

    return [
        {"ids": each.ids, "targets": targets_of(each), **({"weights": weights_of(each)} if in_part else {})}
        for each in rendered
    ]


def fit(
    rendered_rows: "Sequence[tuple[Conversation, Rendered]]", length: int, long: str, what: str
) -> "tuple[list[Rendered], list[str]]":
    """Return the conversations that fit into a row, and what to say of the others.

    Raises:
        DataError: one does not, and none may be longer; its line is named.
    """
    from orrery.data.batches.rendering import cut_to

    beyond = [(each, rendered) for each, rendered in rendered_rows if len(rendered.ids) > length]
    if not beyond:
        return [rendered for _, rendered in rendered_rows], []
    longest = max(len(rendered.ids) for _, rendered in beyond)
    many = f"{len(beyond):,} of {len(rendered_rows):,} {what} conversations"
    than = f"longer than batches.length, {length:,} tokens (the longest has {longest:,})"
    if long == "refuse":
        raise DataError(
            f"{beyond[0][0].where}: {len(beyond[0][1].ids):,} tokens; {many} are {than}",
            f"raise batches.length up to {longest}, as far as the model's context goes, or choose data.long: "
            "cut, leave_out",
        )
    short = [rendered for _, rendered in rendered_rows if len(rendered.ids) <= length]
    if long == "leave_out":
        return short, [f"{many} left out: {than}"]
    kept = [cut_to(rendered, length) for _, rendered in rendered_rows]
    taught = [rendered for rendered in kept if any(rendered.reply)]
    ends = sum(any(rendered.reply[length:]) for _, rendered in rendered_rows)
    lost = f"{many} cut: {than}; they keep their beginning, and {ends:,} lose the end token of the last reply"
    none = len(kept) - len(taught)
    return taught, [lost + (f"; {none:,} left out, as no reply begins before the cut" if none else "")]


def packed_examples(
    request: BatchRequest, train: "Sequence[Row]", held_back: "Sequence[Row]", notes: Sequence[str]
) -> Examples:
    """Return batches of rows with several conversations each; those held back are measured one a row."""
    from orrery.data.batches.padded_rows import PackedRows, SequentialRows

    source = PackedRows(train, request.length, request.size, request.seed)
    tokens = sum(len(row["ids"]) for row in train)
    windows = SequentialRows(held_back, request.size) if held_back else None
    filled = (
        f"packed: {len(train):,} conversations in {len(source.packed):,} rows, {source.padding:.1%} of them padding"
    )
    return Examples(
        train=source,
        held_back=None if windows is None else HeldBack(windows, request.limited(len(windows))),
        tokens={NAME: tokens},
        batch_tokens=round(tokens * request.size / len(source.packed)),
        epochs=lambda step: {NAME: source.epochs(step)},
        notes=(*notes, filled),
    )
