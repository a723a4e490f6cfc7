"""Conversations in the shapes that people write them in, each row as messages of OpenAI's form."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from orrery.data.corpora import read_placed_rows
from orrery.data.files import Faults, Invalid, bad_record
from orrery.data.readers.columns import check_columns, text_of, truth_of
from orrery.data.rows.asked import asked, beside, replied, with_system
from orrery.data.rows.exported import usual_rows
from orrery.data.rows.messages import (
    DETAIL,
    FIELDS,
    ROLES,
    SHARES,
    WEIGHTS,
    at,
    listed,
    messages_of_list,
    messages_of_text,
    speakers,
)
from orrery.errors import DataError
from orrery.text.chat.messages import Message, checked_messages
from orrery.text.chat.messages import text_of as said_in

Shape = Literal["messages", "sharegpt", "turns", "alpaca", "hh"]
SHAPES: tuple[Shape, ...] = get_args(Shape)
"""messages: role and content; sharegpt: from and value; turns: role and text; alpaca: a question and an answer in
columns; hh: one text with Human: and Assistant:."""

LISTS = ("messages", "conversations", "conversation", "turns", "dialogue", "dialog", "chosen", "completion")
"""Names of a column with the messages of a conversation, the likeliest first."""
TEXTS = ("text", "chosen", "conversation", "dialogue")
"""Names of a column with a conversation as one text, the likeliest first."""
ANSWERED = (
    ("instruction", "chosen"), ("prompt", "chosen"), ("question", "chosen"), ("instruction", "output"),
    ("instruction", "response"), ("prompt", "completion"), ("prompt", "response"), ("question", "answer"),
    ("question", "response"), ("query", "response"), ("query", "answer"), ("problem", "solution"), ("input", "output"),
    ("text_input", "output"),
)  # fmt: skip
"""Names of two columns with what is asked and what is answered, the likeliest first; of a pair what was chosen is
learnt, as Rafailov et al. (2023) do before DPO."""

_WHOLE = (
    "a reply is learnt (weight 1, train true), only read (0, false), or learnt in part (a weight between 0 and 1); "
    "write one of them, or allow a number of bad records with `skip_bad=N`"
)


@dataclass(frozen=True)
class Conversation:
    """One conversation: where it stands (file:line), its messages, and what a template reads beside them."""

    where: str
    messages: tuple[Message, ...]
    beside: Mapping[str, Any] = field(default_factory=dict)

    @property
    def first_prompt(self) -> str:
        """What the user says first; conversations that share it are about the same."""
        return next((said_in(message) for message in self.messages if message["role"] == "user"), "")

    @property
    def parts(self) -> tuple[str, ...]:
        """The first prompt."""
        return (self.first_prompt,)

    @property
    def whole(self) -> tuple[str, ...]:
        """All that is said, each with its role."""
        return tuple(f"{message['role']}: {said_in(message)}" for message in self.messages)


@dataclass(frozen=True)
class ConversationLayout:
    """How rows hold conversations: the shape, and the columns that it reads."""

    shape: Shape
    columns: tuple[str, ...]


def read_conversations(
    source: str | Path,
    *,
    shape: Shape | None = None,
    column: str | None = None,
    system: str | None = None,
    check: Callable[[Conversation], None] = lambda conversation: None,
    invalid: Invalid = "error",
    skip_bad: int = 0,
) -> Iterator[Conversation]:
    """Yield the conversations of JSON lines, JSON, CSV, Parquet or a named set.

    Args:
        source: the file, the folder or the name.
        shape: one of `SHAPES`; by default what the columns of the first row say.
        column: the one that holds the list or the text of a conversation, or the answer; by default found by its name.
        system: the system message of conversations that have none.
        check: raises `DataError` for a conversation that cannot be used, such as `refuse_untaught`.
        invalid: what to do with bytes that are no UTF-8.
        skip_bad: so many bad conversations are left out.

    Raises:
        DataError: there is none, no shape is known to have these columns, or a row is no conversation; its line is
            named.
    """
    layout_found, faults = None, Faults(allowed=skip_bad)
    placed = read_placed_rows(source, invalid=invalid, skip_bad=skip_bad)
    for where, row in placed if column else usual_rows(str(source), placed, pairs=False):
        layout = layout_found = layout_found or find_layout(where, row, shape, column)
        try:
            conversation = conversation_of(row, layout, where, system)
            check(conversation)
        except DataError as error:
            faults.meet(error)
            continue
        yield conversation
    if layout_found is None:
        raise DataError(f"{source}: 0 conversations", "check that the file was written whole")


def find_layout(
    where: str, row: Mapping[str, Any], shape: Shape | None = None, column: str | None = None
) -> ConversationLayout:
    """Return how a row holds its conversation, from the names of its columns and what is in them.

    Raises:
        DataError: a column that is named is not there, or no shape is known to have these.
    """
    if column is not None:
        check_columns(where, row, (column,))
    finders: Mapping[str, Callable[[], ConversationLayout | None]] = {
        **{name: _finder(where, row, name, column) for name in FIELDS},
        "alpaca": lambda: _answered(row, column),
        "hh": lambda: _one_text(row, column),
    }
    wanted = SHAPES if shape is None else (shape,)
    layout = next((layout for name in wanted if (layout := finders[name]()) is not None), None)
    if layout is not None:
        return layout
    if "segments" in row:
        raise DataError(
            f"{where}: segments with labels, as axolotl takes them without a template",
            "write them as messages: the role is user where the label is false, assistant where it is true",
        )
    what = "no conversation" if shape is None else f"no conversation of the shape {shape}"
    named = ", ".join(row)[:200] if column is None else f"the column {column}"
    raise DataError(
        f"{where}: {what} in {named}",
        "give messages (role, content), ShareGPT's conversations (from, value), turns (role, text), instruction and "
        "output, or a text with Human: and Assistant:; data.shape and data.column name which",
    )


def conversation_of(
    row: Mapping[str, Any], layout: ConversationLayout, where: str, system: str | None = None
) -> Conversation:
    """Return the conversation of a row.

    Raises:
        DataError: a column is missing, or it is none.
    """
    check_columns(where, row, layout.columns)
    _refuse_undesirable(row, layout.columns[-1], where)
    if layout.shape == "alpaca":
        question, answer = layout.columns
        messages = replied(row, answer, asked(row, question, where), where)
    elif layout.shape == "hh":
        messages = messages_of_text(text_of(row, layout.columns[0], where), where)
    else:
        messages = messages_of_list(row[layout.columns[0]], FIELDS[layout.shape], where)
    messages = with_system({} if system is None else {"system": system}, with_system(row, messages))
    return Conversation(where, tuple(at(where, lambda: checked_messages(messages))), beside(row, where))


def refuse_untaught(conversation: Conversation, *, last: bool = False) -> None:
    """Raise `DataError` for a conversation from which nothing, or an empty answer, would be learnt.

    ``last`` says that the last reply alone is learnt.
    """
    where, messages = conversation.where, conversation.messages
    learnt = [weight_of(message, where, number) for number, message in enumerate(messages)]
    if not any(message["role"] == "assistant" for message in messages):
        raise DataError(
            f"{where}: the assistant says nothing", "leave it out, or allow a number of bad ones with `skip_bad=N`"
        )
    if messages[-1]["role"] != "assistant":
        raise DataError(
            f"{where}: the conversation ends with the {messages[-1]['role']}, and there is no reply to learn",
            "take the last message away, or allow a number of bad ones with `skip_bad=N`",
        )
    for number, message in enumerate(messages):
        if learnt[number] and not said_in(message).strip() and not message.get("tool_calls"):
            raise bad_record(where, f"message {number}, a reply of the assistant, is empty")
    if not (learnt[-1] if last else any(learnt)):
        which = "the last reply, which alone is learnt," if last else "every reply of the assistant"
        raise bad_record(where, f"{which} has the weight 0: there is nothing to learn")


def weight_of(message: Message, where: str, number: int) -> float:
    """Return how much a message counts in the loss: 0 unless the assistant's, and of these its ``weight``, else 1.

    Raises:
        DataError: a weight is no number from 0 to 1, both are there and disagree, or another's message is to be learnt.
    """
    if message.get(DETAIL):
        raise bad_record(where, f"message {number} has {DETAIL}, parts of a reply, and a reply is learnt as a whole")
    given = {name: message[name] for name in WEIGHTS if message.get(name) is not None}
    for name, value in given.items():
        # A share is written as a weight alone: ``train`` and ``loss`` are a yes or a no.
        if not isinstance(value, int | float) or not 0 <= value <= 1 or (name not in SHARES and value not in (0, 1)):
            says = "which says neither that it is learnt nor that it is not"
            raise DataError(f"{where}: message {number} has {name} {json.dumps(value)[:40]}, {says}", _WHOLE)
    wanted = {bool(value) for value in given.values()}
    if len(wanted) > 1:
        raise bad_record(where, f"message {number} has {' and '.join(f'{name} {given[name]}' for name in given)}")
    if message["role"] != "assistant" and wanted == {True}:
        who = f"message {number}, of the {message['role']},"
        raise bad_record(
            where, f"{who} is to be learnt ({', '.join(given)}), and replies of the assistant alone can be"
        )
    share = next((given[name] for name in SHARES if name in given), wanted != {False})
    return float(share) if message["role"] == "assistant" else 0.0


def _refuse_undesirable(row: Mapping[str, Any], answer: str, where: str) -> None:
    """Raise `DataError` for a reply that its row says is a bad one, as rows for KTO do."""
    label = row.get("label")
    if label is False or (answer == "completion" and truth_of(label) is False):
        hint = "learn from both kinds by `orrery dpo MODEL --train FILE --loss kto`, or keep the rows of 1"
        raise DataError(f"{where}: label {label} says that the completion is not desirable", hint)


def _finder(
    where: str, row: Mapping[str, Any], shape: str, column: str | None
) -> Callable[[], ConversationLayout | None]:
    """Return what finds a list whose first message has the fields of a shape."""

    def find() -> ConversationLayout | None:
        for name in LISTS if column is None else (column,):
            items = listed(row.get(name), where)
            first = items[0] if isinstance(items, list | tuple) and items else None
            if not isinstance(first, Mapping) or not set(FIELDS[shape]) <= set(first):
                continue
            # What was chosen may be the reply alone, and the conversation before it another column.
            role = first[FIELDS[shape][0]]
            if name not in ("chosen", "completion") or ROLES.get(str(role), role) != "assistant":
                return ConversationLayout(shape, (name,))  # type: ignore[arg-type]
        return None

    return find


def _answered(row: Mapping[str, Any], column: str | None) -> ConversationLayout | None:
    """Return the columns with what is asked and answered, where there are such; ``column`` names the answer."""
    pairs_of_columns = ANSWERED if column is None else [(first, column) for first, _ in ANSWERED if first != column]
    columns = next(
        (both for both in pairs_of_columns if set(both) <= set(row) and _one_text(row, both[1]) is None), None
    )
    return None if columns is None else ConversationLayout("alpaca", columns)


def _one_text(row: Mapping[str, Any], column: str | None) -> ConversationLayout | None:
    """Return the column with a text in which two speak."""
    for name in TEXTS if column is None else (column,):
        text = row.get(name)
        if isinstance(text, str) and speakers(text):
            return ConversationLayout("hh", (name,))
    return None
