"""What stands in the columns of a row before an answer: a system message, earlier turns, a question and its input."""

from collections.abc import Mapping, Sequence
from typing import Any

from orrery.data.files import bad_record
from orrery.data.readers.columns import list_in, text_of
from orrery.data.rows.messages import listed, messages_of_any_list, messages_of_text, speakers, spoken_before
from orrery.errors import DataError
from orrery.text.chat.messages import Message
from orrery.text.chat.messages import text_of as said_in

SYSTEMS = ("system", "system_prompt")
"""Names of a column with the system message."""
HISTORY = "history"
"""The column of earlier turns, each a question and its answer, as LLaMA-Factory and ChatGLM have it."""
BELOW: Mapping[str, Sequence[str]] = {
    "instruction": ("input", "context"), "question": ("context",), "query": ("context",), "prompt": ("context",),
}  # fmt: skip
"""Columns that stand below what is asked, by the name of its column: Alpaca's ``input``, Dolly's ``context``."""
TOOLS = "tools"
BESIDE = (TOOLS, "documents")
"""Columns that a chat template reads beside the messages."""
FUNCTIONS = "functions"
"""OpenAI's older column of tools."""
SEEN = ("image", "images", "video", "videos", "audio", "audios")
"""Columns of what is seen or heard in a conversation, as LLaVA's, LLaMA-Factory's and ms-swift's sets have them."""
_LEADS = ("system", "developer")


def asked_text(row: Mapping[str, Any], column: str, where: str) -> str | None:
    """Return the text in a column, and below it what belongs to it; nothing where a list of messages stands there.

    Raises:
        DataError: there is no text, or below it stands what is none.
    """
    if isinstance(listed(row[column], where), list | tuple):
        return None
    text = text_of(row, column, where)
    for name in BELOW.get(column, ()):
        more = row.get(name)
        if more is None or more in ("", []):
            continue
        if not isinstance(more, str):
            message = f"{where}: column {name!r}, which belongs to {column!r}, is not a text but {type(more).__name__}"
            raise DataError(message, "write it as a text, or take the column away")
        if more.strip() and more not in text:
            text = f"{text}\n\n{text_of(row, name, where)}"
    if not text.strip():
        raise bad_record(where, f"column {column!r} is empty")
    return text


def asked(row: Mapping[str, Any], column: str, where: str) -> list[Message]:
    """Return the turns before an answer: those of ``history``, and the messages or the text in a column.

    Raises:
        DataError: there is no text and no list of messages.
    """
    text = asked_text(row, column, where)
    turns = messages_of_any_list(listed(row[column], where), where) if text is None else turns_of(text)
    return [*_history(row, where), *turns]


def turns_of(text: str) -> list[Message]:
    """Return a text as what the user says, or the turns in it where two speak and the assistant is next."""
    return spoken_before(text) or [{"role": "user", "content": text}]


def replied(row: Mapping[str, Any], column: str, before: Sequence[Message], where: str) -> list[Message]:
    """Return a conversation: what was said before, and the reply in a column.

    A column that holds the whole conversation, as UltraFeedback's ``chosen`` beside its ``prompt``, stands for both.

    Args:
        row: it.
        column: holds a text, a list of messages, or a text in which two speak.
        before: what was asked; without it the column holds the whole conversation.
        where: the place of the row.

    Raises:
        DataError: the column holds none of these, or a conversation in which what was asked does not occur.
    """
    value = listed(row[column], where)
    if isinstance(value, list | tuple):
        after = messages_of_any_list(value, where)
        return joined(before, after, column, where) if before else after
    text = text_of(row, column, where)
    if not before:
        return messages_of_text(text, where)
    spoken = speakers(text)
    return spoken if _holds(spoken, before) else [*before, {"role": "assistant", "content": text}]


def joined(before: Sequence[Message], after: list[Message], column: str, where: str) -> list[Message]:
    """Return messages and those behind them; where the latter hold the former, each of them is there once."""
    if before[-1]["role"] != "user" or after[0]["role"] in ("assistant", "tool"):
        return [*before, *after]
    if not _holds(after, before):
        message = f"{where}: column {column!r} is a whole conversation, in which the prompt of the row does not occur"
        raise DataError(message, "take the column of the prompt away, or the turns before the reply")
    leads = [] if after[0]["role"] in _LEADS else [message for message in before if message["role"] in _LEADS]
    return [*leads, *after]


def with_system(row: Mapping[str, Any], messages: list[Message]) -> list[Message]:
    """Return messages behind the system message of a row's column, where they have none of their own.

    It is a text, or a list of parts with texts, as Bedrock and Anthropic have it.
    """
    said = (said_in({"content": row[name]}) for name in SYSTEMS if isinstance(row.get(name), str | list))
    system = next((text for text in said if text.strip()), None)
    if system is None or messages[0]["role"] in _LEADS:
        return messages
    return [{"role": "system", "content": system}, *messages]


def beside(row: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return what a template reads beside the messages; tools may be a list in JSON, or OpenAI's older functions.

    Documents that are a text, and functions that are no objects with names, are columns like others, and not read.

    Raises:
        DataError: the tools are a text that is no list, or something is seen or heard in the conversation.
    """
    if seen := next((name for name in SEEN if row.get(name)), None):
        message = f"{where}: column {seen!r} holds what is seen or heard, and conversations are learnt as texts"
        raise DataError(message, "leave such rows out, or allow a number of bad ones with `skip_bad=N`")
    found = {name: value for name in BESIDE if (value := _as_list(row.get(name)))}
    if found.get(TOOLS) is None and isinstance(row.get(TOOLS), str) and row[TOOLS].strip() not in ("", "[]"):
        raise bad_record(where, f"column {TOOLS!r} is a text, and no list in JSON: {row[TOOLS][:60]!r}")
    functions = _as_list(row.get(FUNCTIONS))
    if TOOLS not in found and functions and all(map(_is_function, functions)):
        found[TOOLS] = functions
    if isinstance(tools := found.get(TOOLS), list | tuple):
        found[TOOLS] = [_wrapped(each) if _is_function(each) else each for each in tools]
    return found


def _is_function(value: Any) -> bool:
    """Say whether a tool stands alone, without the object around it that templates read, as LLaMA-Factory has it."""
    return isinstance(value, Mapping) and "name" in value and not {"type", "function"} & set(value)


def _wrapped(tool: Mapping[str, Any]) -> dict[str, Any]:
    """Return a tool as templates read it; Anthropic calls its parameters ``input_schema``."""
    named = {"parameters" if name == "input_schema" else name: value for name, value in tool.items()}
    return {"type": "function", "function": named}


def _as_list(value: Any) -> Any:
    return list_in(value) if isinstance(value, str) else value


def _history(row: Mapping[str, Any], where: str) -> list[Message]:
    """Return earlier turns: pairs of a question and its answer."""
    value = row.get(HISTORY)
    turns = list_in(value) if isinstance(value, str) else value
    if not isinstance(turns, list | tuple) or not turns:
        return []
    if not all(isinstance(turn, list | tuple) and len(turn) == 2 for turn in turns):
        raise bad_record(where, f"column {HISTORY!r} is no list of questions and answers: {str(value)[:60]!r}")
    return [
        {"role": role, "content": said}
        for turn in turns
        for role, said in zip(("user", "assistant"), turn, strict=True)
    ]


def _holds(messages: Sequence[Message], before: Sequence[Message]) -> bool:
    """Say whether all that the user says before is said in a conversation too."""
    said = {said_in(message).strip() for message in messages[:-1] if message["role"] == "user"}
    return all(said_in(message).strip() in said for message in before if message["role"] == "user")
