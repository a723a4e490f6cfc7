"""Interactions: what users took in the order of time, to learn what comes next; the last of each user is held back."""

from collections.abc import Iterable, Sequence
from typing import Any, Literal

from orrery.data.documents import unknown_share
from orrery.data.readers.interactions import read_interactions
from orrery.data.readers.item_texts import read_item_texts
from orrery.data.rows.histories import LEAST, History, histories, remarks_on, spelt
from orrery.data.sources import BatchRequest, Examples, HeldBack, Source, SourceSettings, register
from orrery.data.sources._rows import examples_of, fingerprint_of
from orrery.errors import DataError
from orrery.schema.numbers import Count, Share

NAME = "histories"
"""What the histories are called in metrics and tables."""


class InteractionSettings(SourceSettings):
    """Which actions, and their columns; what is not named is found by its name.

    ``events`` are the kinds of actions that are taken, commas between; all are where none is named. ``core`` leaves out
    users and items of fewer actions. ``items`` is a file with a text for each item, which are items to be ranked though
    nobody took them. ``seen`` ranks the items of a user's own history too, which are left out otherwise; ``sampled``
    scores a ranking among so many items drawn at random beside that of all. ``counts`` is the share that counts of what
    followed what have in a ranking, beside the model; the scores while it learns are its own.
    """

    kind: Literal["interactions"] = "interactions"
    train: str
    user: str | None = None
    item: str | None = None
    time: str | None = None
    events: str | None = None
    core: Count = 0
    items: str | None = None
    seen: bool = False
    sampled: Count = 0
    counts: Share = 0.0
    invalid: Literal["error", "replace"] = "error"
    skip_bad: Count = 0

    @property
    def described(self) -> str:
        """The name of the file or set."""
        return self.train

    @property
    def holds_back(self) -> bool:
        """The last two items of each user."""
        return True

    @property
    def counted(self) -> tuple[str, ...]:
        """The histories."""
        return (NAME,)


@register
class InteractionSource(Source):
    """Histories without their last two items, each beside what comes next (``shifted``), or as it is (``whole``).

    Of a history longer than a row the newest items are read. Held back is the last item but one, which chooses the
    model; the last one is for the scores at the end. Beside what an objective reads these have
    what is ``asked`` [B L], where that ``ends`` [B], the ``place`` of the answer [B], and what comes ``next`` [B].
    """

    Settings = InteractionSettings
    gives = ("ids", "real")
    batch_kinds = ("shifted", "whole")
    needs_tokenizer = gives_text = True

    def __init__(
        self, found: Sequence[History], settings: InteractionSettings, texts: dict[str, str], notes: Sequence[str] = ()
    ) -> None:
        self.histories, self.settings, self.item_texts, self.notes = found, settings, texts, notes
        self.items = sorted({item for each in found for item in each.items} | texts.keys())

    @classmethod
    def fields(cls, batches: str) -> tuple[str, ...]:
        """Return the fields of a kind of batches."""
        return ("ids", "real", "targets") if batches == "shifted" else cls.gives

    @classmethod
    def read(cls, settings: InteractionSettings) -> "InteractionSource":
        """Read the actions, and the texts of the items where they are named.

        Raises:
            DataError: there is no action, or nobody has as many as are needed to hold something back.
        """
        asked = {name: getattr(settings, name) for name in ("user", "item", "time")}
        notes: list[str] = []
        how: dict[str, Any] = {"invalid": settings.invalid, "skip_bad": settings.skip_bad, "tell": notes.append}
        how["events"] = tuple(map(str.strip, settings.events.split(","))) if settings.events else ()
        found = histories(read_interactions(settings.train, asked, **how), settings.core)
        if not any(each.is_divided for each in found):
            left = f" of users and items with {settings.core:,} each (data.core)" if settings.core > 1 else ""
            message = f"{settings.train}: no user has {LEAST} actions or more{left}, so nothing can be held back"
            raise DataError(message, "lower data.core, or give longer histories; data.user names the column of users")
        return cls(found, settings, {} if settings.items is None else read_item_texts(settings.items), notes)

    @property
    def train(self) -> Sequence[History]:
        """The histories; `History.learned` is what is learned of each."""
        return self.histories

    @property
    def held_back(self) -> Sequence[History]:
        """The histories whose last item is scored on."""
        return [each for each in self.histories if each.is_divided]

    @property
    def fingerprint(self) -> str:
        """The sha256 of all histories, and of the texts of the items."""
        return fingerprint_of((*self.histories, *sorted(self.item_texts.items())))

    def texts(self) -> Iterable[str]:
        """Return the items, those held back too: a model ranks items that nobody has taken yet."""
        return map(spelt, self.items)

    def sides(self) -> tuple[Sequence[Any], Sequence[Any]]:
        """Return nothing: each user is on both sides."""
        return (), ()

    def remarks(self) -> Sequence[str]:
        """Say which columns are read, how many actions and equal times there are, and what cannot be found."""
        return [*self.notes, *remarks_on(self.histories)]

    def examples(self, request: BatchRequest) -> Examples:
        """Encode the histories and make batches of them.

        Raises:
            DataError: no history has two items to learn from, and the batches are ``shifted``.
        """
        from orrery.data.batches.histories import framed, masked_rows, numbers_of

        tokenizer, length = request.required_tokenizer, request.length
        learned = [numbers_of(tokenizer, each.learned) for each in self.histories]
        held = [numbers_of(tokenizer, each.items[:-1]) for each in self.held_back]
        long = sum(len(ids) > length for ids in learned)
        notes = (
            [f"{long:,} of {len(learned):,} histories lose their oldest items: a row has {length:,}"] if long else []
        )
        notes += unknown_share(tokenizer, learned)
        if request.kind == "whole":
            train = [{"ids": framed(tokenizer, ids, length)} for ids in learned if ids]
            return examples_of(request, train, masked_rows(tokenizer, held, length), notes)
        return shifted(request, [ids for ids in learned if len(ids) > 1], held, notes)


def shifted(request: BatchRequest, learned: list[list[int]], held: list[list[int]], notes: Sequence[str]) -> Examples:
    """Return histories each item of which stands beside the one after it; of those held back the last alone counts."""
    from orrery.data.batches.histories import next_rows
    from orrery.data.batches.padded_rows import SequentialRows
    from orrery.data.batches.token_windows import IGNORE, PaddedBatches

    if not learned:
        raise DataError("no history has two items to learn from, beside the two that are held back",
                        "give longer histories, or batches.kind whole with the objective masked")  # fmt: skip
    length = request.length
    newest = [ids[-length - 1 :] for ids in learned]
    source = PaddedBatches(newest, request.size, request.seed, length)
    windows = SequentialRows(next_rows(held, length, IGNORE), request.size)
    tokens = sum(len(ids) - 1 for ids in newest)
    return Examples(
        train=source,
        held_back=HeldBack(windows, request.limited(len(windows))),
        tokens={NAME: tokens},
        batch_tokens=round(tokens * request.size / len(newest)),
        epochs=lambda step: {NAME: step * request.size / len(newest)},
        notes=notes,
    )
