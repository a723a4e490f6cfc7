"""Preferences: conversations whose last reply was preferred to another, or is good or bad by itself."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from orrery.data.documents import unknown_share
from orrery.data.rows.conversations import Conversation
from orrery.data.rows.preferences import Preference, PreferenceColumns, read_preferences
from orrery.data.sources import BatchRequest, Examples, Source, register
from orrery.data.sources._rows import RowsSettings, SplitSettings, divided, examples_in, fingerprint_of
from orrery.errors import DataError
from orrery.text.chat.messages import text_of as said_in

if TYPE_CHECKING:
    from orrery.data.batches.preferences import PreferencePair, RenderedReply, SingleReply
    from orrery.text.chat.render import ChatTemplate

PAIRS, UNPAIRED = "pairs", "unpaired"


class ByPromptSettings(SplitSettings):
    """Rows are held back by their first prompt unless ``by`` says ``row``."""

    by: Literal["row", "prompt"] = "prompt"


class PreferenceSettings(RowsSettings):
    """Which rows, their settings.columns, and what is done with those that are longer than a row of a batch.

    ``long: refuse`` names the first one; ``leave_out`` counts them; ``cut`` takes away the beginning of the prompt, and
    leaves out what is too long even so: a reply is never cut. ``template`` is the format in which conversations are
    rendered, by default that of the model that the run begins from, else chatml; ``system`` is said before those that
    have no system message.
    """

    kind: Literal["preferences"] = "preferences"
    split: ByPromptSettings | None = None  # type: ignore[assignment]  # another split than by rows
    columns: PreferenceColumns = Field(default_factory=PreferenceColumns)
    long: Literal["refuse", "leave_out", "cut"] = "refuse"
    template: str | None = None
    system: str | None = None


@register
class PreferenceSource(Source):
    """Pairs of replies, or (``batches.kind: unpaired``) replies that stand alone; an example is one row of the file.

    ``ids``, ``real`` and ``reply`` are [B, 2, L]: chosen and rejected, or a reply and another's to the same prompt;
    ``margin`` and ``desirable`` are [B]. Pairs can be learnt unpaired too, each as two.
    """

    Settings = PreferenceSettings
    gives = ("ids", "real", "reply", "margin")
    batch_kinds = by_tokens = (PAIRS, UNPAIRED)
    needs_tokenizer = gives_text = True

    def __init__(
        self,
        train: Sequence[Preference],
        held_back: Sequence[Preference],
        long: Literal["refuse", "leave_out", "cut"] = "refuse",
        template: str | None = None,
    ) -> None:
        self.train, self.held_back, self.long, self.template = train, held_back, long, template

    @classmethod
    def fields(cls, batches: str) -> tuple[str, ...]:
        """Return the fields of a kind of batches."""
        return ("ids", "real", "reply", "desirable") if batches == UNPAIRED else cls.gives

    @classmethod
    def read(cls, settings: PreferenceSettings) -> "PreferenceSource":
        """Read the rows.

        Raises:
            DataError: one is no preference, or there is none to train on or to hold back.
        """

        def read(source: str) -> list[Preference]:
            how: dict[str, Any] = {"invalid": settings.invalid, "skip_bad": settings.skip_bad}
            return list(read_preferences(source, settings.columns, system=settings.system, **how))

        return cls(*divided(settings, read), settings.long, settings.template)

    @property
    def fingerprint(self) -> str:
        """The sha256 of all rows in their order, those held back too."""
        rows = (*self.train, *self.held_back)
        return fingerprint_of((row.margin, [(side.messages, good) for side, good in row.sides]) for row in rows)

    def remarks(self) -> Sequence[str]:
        """Say how many rows call the reply chosen that they score lower, and what stands on both sides."""
        below = sum(row.margin < 0 for row in self.train)
        said = f"warning: {below:,} of {len(self.train):,} training rows have a margin below 0: "
        said += "what is called chosen is scored lower"
        return [*([said] if below else []), *super().remarks()]

    def texts(self) -> Iterable[str]:
        """Return what is said in the training rows, prompts once."""
        for row in self.train:
            *before, last = row.either.messages
            yield from (said_in(message) for message in (*before, last))
            yield from (said_in(side.messages[-1]) for side, _ in row.sides[1:])

    def chat(self, base: Mapping[str, str]) -> Mapping[str, str]:
        """Return the templates of the trained model, ``default`` the one that conversations are rendered with."""
        from orrery.text.chat.of_run import templates_of_run

        return templates_of_run(self.template, base)

    def examples(self, request: BatchRequest) -> Examples:
        """Render the conversations, treat what is too long as the settings say, and make batches.

        Raises:
            DataError: a conversation is too long or cannot be said in the template, or no row is left.
        """
        from orrery.data.batches.preferences import PreferenceBatches, SequentialPreferences, mismatched, paired

        make: Callable[..., Any] = mismatched(request.length) if request.kind == UNPAIRED else paired
        train, notes = self._encoded(request, self.train, "training")
        others, more = self._encoded(request, self.held_back, "held-back")
        source = PreferenceBatches(train, make, request.size, request.seed, request.tokens)
        windows = SequentialPreferences(others, make, request.size, request.tokens) if others else None
        unknown = unknown_share(request.required_tokenizer, [side.ids for row in train for side in sides_of(row)])
        said = (*notes, *more, *again(self.train), *unknown)
        return examples_in(request, source, windows, int(source.lengths.sum()), said)

    def _encoded(self, request: BatchRequest, rows: Sequence[Preference], what: str) -> "tuple[list[Any], list[str]]":
        """Return rows as ids that fit into those of a batch, and what to say."""
        from orrery.data.batches.preferences import PreferencePair, SingleReply

        template, fitting_rows, cut = request.template, list[Any](), 0
        for row in rows:
            sides = [(rendered(template, side), good) for side, good in row.sides]
            if request.kind == PAIRS and len(sides) < 2:
                raise DataError(
                    f"{row.where}: a reply that stands alone, and the objective learns from pairs",
                    "learn with the objective kto: orrery dpo MODEL --train FILE --loss kto",
                )
            for group in [sides] if request.kind == PAIRS else [[side] for side in sides]:
                fitting = fitted([side for side, _ in group], request.length, self.long, row.where)
                cut += fitting is not None and fitting != [side for side, _ in group]
                if fitting is not None and request.kind == PAIRS:
                    fitting_rows.append(PreferencePair(fitting[0], fitting[1], row.margin))
                elif fitting is not None:
                    fitting_rows.append(SingleReply(fitting[0], group[0][1]))
        total = len(rows) if request.kind == PAIRS else sum(len(row.sides) for row in rows)
        if rows and not fitting_rows:
            message = f"every {what} row is longer than {request.length:,} tokens"
            raise DataError(message, "raise batches.length, or data.long: cut")
        counts = {
            "left out: longer than": total - len(fitting_rows),
            "lost the beginning of their prompt: longer than": cut,
        }
        notes = [
            f"{n:,} of {total:,} {what} rows {how} batches.length, {request.length:,}" for how, n in counts.items() if n
        ]
        return fitting_rows, notes


def sides_of(row: "PreferencePair | SingleReply") -> "Sequence[RenderedReply]":
    """Return the sides of a row."""
    from orrery.data.batches.preferences import PreferencePair

    return (row.chosen, row.rejected) if isinstance(row, PreferencePair) else (row.side,)


def rendered(template: "ChatTemplate", conversation: Conversation) -> "RenderedReply":
    """Return a conversation as ids, where its last reply begins, and what the template writes behind its end.

    Raises:
        DataError: the template cannot say it, or says nothing of the reply.
    """
    from orrery.data.batches.preferences import RenderedReply
    from orrery.data.batches.rendering import render

    rendered = render(template, conversation, "last")
    if True not in rendered.reply:
        message = f"{conversation.where}: the template writes nothing of the last reply"
        raise DataError(message, "name another with data.template")
    return RenderedReply(rendered.ids, rendered.reply.index(True), rendered.reply[::-1].index(True))


def fitted(sides: "Sequence[RenderedReply]", length: int, long: str, where: str) -> "list[RenderedReply] | None":
    """Return the sides of a row with at most ``length`` tokens each, or nothing where the row is left out.

    Raises:
        DataError: one is longer, and that is refused.
    """
    from orrery.data.batches.preferences import RenderedReply

    longest, prompt = max(len(side.ids) for side in sides), max(side.start for side in sides)
    if longest <= length:
        return list(sides)
    if long == "refuse":
        alone = f"the prompt has {prompt:,} tokens" if prompt >= length else f"prompt and reply have {longest:,} tokens"
        message = f"{where}: {alone}, and batches.length is {length:,}"
        raise DataError(message, "raise batches.length, or data.long: cut (the prompt's beginning) or leave_out")
    kept = length - max(len(side.ids) - side.start for side in sides)
    if long == "leave_out" or kept < 1:
        return None
    # As much of the prompt on both sides, so that the replies are still compared after the same.
    return [RenderedReply(side.ids[max(0, side.start - kept) :], min(kept, side.start), side.after) for side in sides]


def again(train: Sequence[Preference]) -> list[str]:
    """Say how many training rows come twice."""
    twice = len(train) - len({repr([(side.messages, good) for side, good in row.sides]) for row in train})
    return [f"{twice:,} of {len(train):,} training rows come again"] if twice else []
