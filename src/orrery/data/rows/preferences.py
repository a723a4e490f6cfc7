"""Preferences as people write them: two replies to one prompt of which one is better, or one that is good or bad."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orrery.data.corpora import read_placed_rows
from orrery.data.files import Faults, Invalid, bad_record
from orrery.data.readers.columns import check_columns, truth_of
from orrery.data.rows.asked import asked, beside, replied, with_system
from orrery.data.rows.conversations import Conversation
from orrery.data.rows.exported import usual_rows
from orrery.data.rows.messages import at
from orrery.errors import DataError
from orrery.schema.section import Section
from orrery.text.chat.messages import Message, checked_messages
from orrery.text.chat.messages import text_of as said_in

PROMPTS = ("prompt", "instruction", "question", "query")
"""Names of a column with what is asked, the likeliest first."""
CHOSEN, REJECTED, COMPLETION, LABEL, MARGIN = "chosen", "rejected", "completion", "label", "margin"
"""The usual names of the other columns."""
_HINT = "give prompt, chosen and rejected; instruction, input, chosen and rejected; chosen and rejected as whole "
_HINT += "conversations; or prompt, completion and label; data.columns names others"


@dataclass(frozen=True)
class Preference:
    """One row: the conversation with what was chosen, that with what was rejected, and by how much the first is better.

    Of a reply that stands alone one side is missing: what is desirable was chosen, and nothing rejected.
    """

    chosen: Conversation | None
    rejected: Conversation | None
    margin: float = 0.0

    @property
    def either(self) -> Conversation:
        """The side that is there, the chosen one first."""
        side = self.chosen or self.rejected
        assert side is not None
        return side

    @property
    def where(self) -> str:
        """Where it stands (file:line)."""
        return self.either.where

    @property
    def first_prompt(self) -> str:
        """What the user says first."""
        return self.either.first_prompt

    @property
    def parts(self) -> tuple[str, ...]:
        """The first prompt."""
        return (self.first_prompt,)

    @property
    def whole(self) -> tuple[str, ...]:
        """All that is said on both sides."""
        return tuple(text for side, _ in self.sides for text in side.whole)

    @property
    def sides(self) -> tuple[tuple[Conversation, bool], ...]:
        """The conversations that are there, and whether each was chosen."""
        return tuple((side, good) for side, good in ((self.chosen, True), (self.rejected, False)) if side is not None)


class PreferenceColumns(Section):
    """Columns of the rows; what is not named is found by its name. ``scores`` are two, the margin their difference."""

    prompt: str | None = None
    chosen: str | None = None
    rejected: str | None = None
    completion: str | None = None
    label: str | None = None
    margin: str | None = None
    scores: tuple[str, str] | None = None

    @property
    def named(self) -> tuple[str, ...]:
        """All that are named."""
        own = (self.prompt, self.chosen, self.rejected, self.completion, self.label, self.margin)
        return (*(name for name in own if name is not None), *(self.scores or ()))


FOUND = PreferenceColumns()
"""Nothing is named."""


def read_preferences(
    source: str | Path,
    columns: PreferenceColumns = FOUND,
    *,
    system: str | None = None,
    invalid: Invalid = "error",
    skip_bad: int = 0,
) -> Iterator[Preference]:
    """Yield the rows of JSON lines, JSON, CSV, Parquet or a named set.

    Args:
        source: the file, the folder or the name.
        columns: those that are named.
        system: the system message of conversations that have none.
        invalid: what to do with bytes that are no UTF-8.
        skip_bad: so many bad rows are left out.

    Raises:
        DataError: there is none, or a row is no preference; its line is named.
    """
    faults, empty = Faults(allowed=skip_bad), True
    placed = read_placed_rows(source, invalid=invalid, skip_bad=skip_bad)
    for where, row in placed if columns.named else usual_rows(str(source), placed, pairs=True):
        empty = False
        check_columns(where, row, columns.named)
        read = _reader(row, columns, where)
        try:
            preference = read(row, columns, where)
            yield preference if system is None else _with_system(preference, system)
        except DataError as error:
            faults.meet(error)
    if empty:
        raise DataError(f"{source}: 0 rows", "check that the file was written whole")


def _reader(
    row: Mapping[str, Any], columns: PreferenceColumns, where: str
) -> "Callable[[Mapping[str, Any], PreferenceColumns, str], Preference]":
    """Return what reads rows with these columns.

    Raises:
        DataError: no kind of preferences is known to have them.
    """
    if {columns.chosen or CHOSEN, columns.rejected or REJECTED} <= set(row):
        return _pair
    if {columns.completion or COMPLETION, columns.label or LABEL} <= set(row):
        return _alone
    if isinstance(row.get("completions"), list) and isinstance(row.get("labels"), list):
        message = f"{where}: labels of the steps of an answer, from which no task learns"
        raise DataError(
            message,
            "give prompt, completion, which is a whole answer, and label: `orrery dpo MODEL --train FILE --loss kto`",
        )
    raise DataError(f"{where}: no preferences in {', '.join(row)[:200]}", _HINT)


def _pair(row: Mapping[str, Any], columns: PreferenceColumns, where: str) -> Preference:
    """Return a row with two replies to one prompt."""
    names = (columns.chosen or CHOSEN, columns.rejected or REJECTED)
    chosen, rejected = (_conversation(row, columns, name, where) for name in names)
    if [_said(message) for message in chosen[:-1]] != [_said(message) for message in rejected[:-1]]:
        message = "the two sides have different prompts: only the last reply may differ"
        raise bad_record(where, message)
    if _said(chosen[-1]) == _said(rejected[-1]):
        raise bad_record(where, f"{names[0]} and {names[1]} are the same, so neither is preferred")
    first, second = (Conversation(where, messages, beside(row, where)) for messages in (chosen, rejected))
    return Preference(first, second, _margin(row, columns, where))


def _alone(row: Mapping[str, Any], columns: PreferenceColumns, where: str) -> Preference:
    """Return a row with one reply and whether it is desirable."""
    messages = _conversation(row, columns, columns.completion or COMPLETION, where)
    conversation = Conversation(where, messages, beside(row, where))
    name = columns.label or LABEL
    label = truth_of(row[name])
    if label is None:
        raise bad_record(where, f"column {name!r} is {str(row[name])[:40]!r}, and neither true nor false")
    return Preference(conversation, None) if label else Preference(None, conversation)


def _conversation(row: Mapping[str, Any], columns: PreferenceColumns, side: str, where: str) -> tuple[Message, ...]:
    """Return a side as messages that end with a reply.

    Raises:
        DataError: it does not, or the reply is empty.
    """
    prompt = columns.prompt or next((name for name in PROMPTS if name in row), None)
    before = [] if prompt is None else asked(row, prompt, where)
    said = with_system(row, replied(row, side, before, where))
    messages = tuple(at(where, lambda: checked_messages(said)))
    if len(messages) < 2 or messages[-1]["role"] != "assistant":
        raise DataError(
            f"{where}: column {side!r} ends with the {messages[-1]['role']}, and there is no reply to judge",
            "take the last message away, or allow a number of bad rows with `skip_bad=N`",
        )
    if not said_in(messages[-1]).strip():
        raise bad_record(where, f"the reply in column {side!r} is empty")
    return messages


def _margin(row: Mapping[str, Any], columns: PreferenceColumns, where: str) -> float:
    """Return by how much the chosen reply is better, as far as the row says so."""
    if columns.scores is not None:
        first, second = (_number(row, name, where) for name in columns.scores)
        return first - second
    name = columns.margin or MARGIN
    return _number(row, name, where) if name in row else 0.0


def _number(row: Mapping[str, Any], name: str, where: str) -> float:
    value = row[name]
    try:
        number = float("nan") if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise bad_record(where, f"column {name!r} is {str(value)[:40]!r}, and no number to learn with")
    return number


def _said(message: Message) -> tuple[str, str]:
    return message["role"], said_in(message).strip()


def _with_system(preference: Preference, text: str) -> Preference:
    """Return a preference whose conversations begin with a system message, where they have none."""

    def begun(side: Conversation | None) -> Conversation | None:
        if side is None or side.messages[0]["role"] in ("system", "developer"):
            return side
        return Conversation(side.where, ({"role": "system", "content": text}, *side.messages), side.beside)

    return Preference(begun(preference.chosen), begun(preference.rejected), preference.margin)
