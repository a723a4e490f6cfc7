"""Messages in the shapes that people write them in: lists of objects, such lists in a cell, texts with speakers."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from orrery.data.files import bad_record
from orrery.data.readers.columns import list_in
from orrery.data.rows.content_blocks import unblocked
from orrery.errors import DataError, OrreryError
from orrery.text.chat.messages import Message

FIELDS: Mapping[str, tuple[str, str]] = {
    "messages": ("role", "content"),
    "sharegpt": ("from", "value"),
    "turns": ("role", "text"),
}
"""What the lists of a shape call the role and the text of a message."""
CALL = "function_call"
"""The role under which LLaMA-Factory and ShareGPT's tools write a call, as JSON in the place of a text."""
ROLES: Mapping[str, str] = {
    "human": "user",
    "prompter": "user",
    "gpt": "assistant",
    "chatgpt": "assistant",
    "bot": "assistant",
    "bing": "assistant",
    "bard": "assistant",
    "model": "assistant",
    "observation": "tool",
    "function": "tool",
    CALL: "assistant",
}
"""Other names of the roles that messages have."""
_COHERE: Mapping[str, str] = {"System": "system", "User": "user", "Chatbot": "assistant", "Tool": "tool"}
"""What Cohere calls them; of another case a role is known only beside its Chatbot."""
_KNOWN = {"system", "developer", "user", "assistant", "tool", *ROLES}
SHARES = ("weight", "loss_scale")
"""Fields of a message that say how much it is learnt, from 0 to 1: OpenAI's, and ms-swift's."""
WEIGHTS = (*SHARES, "train", "loss")
"""These, and the ones that say whether it is: axolotl's and ms-swift's true or false."""
DETAIL = "train_detail"
"""Axolotl's field of parts of a reply that are learnt, or are not."""

_GEMINI = (("functionCall", "function_call"), ("functionResponse", "function_response"))
"""What Gemini calls the parts of a call and of its answer, in JSON and in Python."""
_SPEAKER = re.compile(r"\n\n(Human|Assistant):")
_LIST = re.compile(r"\s*\[\s*\{")
_CUT = re.compile(r"""\s*\[\s*\{\s*["'](?:role|from)["']\s*:\s*["'](?:system|user|assistant|human|gpt)["']""")
"""How a list of messages begins, which is then meant as one even where it does not end."""


def listed(value: Any, where: str) -> Any:
    """Return a list of messages that a table holds as text, as JSON or Python write it; any other value as it is.

    A text that is a list of other objects, such as the entities that an answer names, is a text.

    Raises:
        DataError: a text that begins as such a list does, and is none.
    """
    if isinstance(value, Mapping):
        return [value]
    if not isinstance(value, str) or not _LIST.match(value):
        return value
    items = list_in(value)
    if items is None and _CUT.match(value):
        raise bad_record(where, f"begins as a list of messages, and is neither JSON nor Python's: {value[:60]!r}")
    return items if items and _is_message(items[0]) else value


def _is_message(item: Any) -> bool:
    """Say whether an object has a role that messages have, and what is said where its shape has it."""
    return isinstance(item, Mapping) and any(
        item[role].lower() in _KNOWN and (content in item or (role == "role" and "tool_calls" in item))
        for role, content in FIELDS.values()
        if isinstance(item.get(role), str)  # of another case is told of as a role that there is not
    )


def messages_of_any_list(items: Any, where: str) -> list[Message]:
    """Return a list of objects as messages, in the shape whose fields the first has.

    Raises:
        DataError: it is no list of objects, or one lacks its role.
    """
    first = items[0] if items else None
    keys = set(first) if isinstance(first, Mapping) else set()
    return messages_of_list(items, next((own for own in FIELDS.values() if own[0] in keys), FIELDS["messages"]), where)


def messages_of_list(value: Any, fields: tuple[str, str], where: str) -> list[Message]:
    """Return a list of objects as messages; what else they hold (tool calls, reasoning) stays.

    Raises:
        DataError: it is no list of objects, or one lacks its role.
    """
    items = listed(value, where)
    if not isinstance(items, list | tuple) or not items:
        what = "an empty list" if isinstance(items, list | tuple) else type(value).__name__
        raise bad_record(where, f"no list of messages but {what}")
    role, content = fields
    named = {str(item[role]) for item in items if isinstance(item, Mapping) and role in item}
    roles = {**ROLES, **_COHERE} if "Chatbot" in named else ROLES
    messages: list[Message] = []
    for number, item in enumerate(items):
        if not isinstance(item, Mapping) or role not in item:
            raise bad_record(where, f"message {number} is no object with {role!r} and {content!r}")
        # Only OpenAI's form has more that a template reads: tool calls, reasoning.
        said = _with_calls(item) if content == "content" else {"content": item[content]} if content in item else {}
        said |= {"content": _read_parts(said["content"], number, where)} if "content" in said else {}
        said = _called(said.get("content"), number, where) if item[role] == CALL else said
        said |= {name: item[name] for name in (*WEIGHTS, DETAIL) if name in item}
        own = unblocked({**said, "role": roles.get(str(item[role]), item[role])}, messages)
        for message in own:
            _refuse_unread(message, number, where)
        messages += own
    return messages


def _refuse_unread(message: Message, number: int, where: str) -> None:
    """Raise `DataError` for a part that is no text, as a picture is."""
    content = message.get("content")
    for part in content if isinstance(content, list) else ():
        if isinstance(part, Mapping) and part.get("type", "text") != "text":
            raise DataError(
                f"{where}: message {number} has a part of the type {part['type']!r}, and texts alone are learnt from",
                "leave such conversations out, or allow a number of bad ones with `skip_bad=N`",
            )


def messages_of_parts(items: Sequence[Any]) -> list[Message]:
    """Return what Gemini calls contents, each with a role and parts, as messages; parts of other kinds stay.

    Calls of functions are those of the message that they stand in; what a function gave is a message of its own.
    """
    return [message for item in items for message in _of_content(item)]


def _of_content(item: Mapping[str, Any]) -> list[Message]:
    role, parts = ROLES.get(str(item.get("role")), item.get("role", "user")), item.get("parts")
    given = [part for part in parts if isinstance(part, Mapping)] if isinstance(parts, list) else []
    calls, answers = (
        [part[name] for part in given for name in names if isinstance(part.get(name), Mapping)] for names in _GEMINI
    )
    if not calls and not answers:
        return [{"role": role, "content": joined_parts(parts)}]
    rest = [part for part in given if not any(name in part for names in _GEMINI for name in names)]
    made = [_function(call.get("name"), call.get("args") or {}) for call in calls]
    own = {"role": role, **({"content": joined_parts(rest)} if rest else {}), **({"tool_calls": made} if made else {})}
    return [
        *([own] if rest or made else []),
        *({"role": "tool", "name": one.get("name"), "content": _json(one.get("response"))} for one in answers),
    ]


def _called(content: Any, number: int, where: str) -> dict[str, Any]:
    """Return the calls that a message has in JSON, one or a list. Raises `DataError` where it is none."""
    try:
        found = json.loads(content) if isinstance(content, str) else content
    except (ValueError, RecursionError):
        found = None
    calls = found if isinstance(found, list) else [found]
    if not calls or not all(isinstance(call, Mapping) and {"name", "arguments"} <= set(call) for call in calls):
        raise bad_record(where, f"message {number} is no call with a name and arguments in JSON: {str(content)[:60]!r}")
    return {"tool_calls": [_function(call["name"], call["arguments"]) for call in calls]}


def _function(name: Any, arguments: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "arguments": arguments}}


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _read_parts(content: Any, number: int, where: str) -> Any:
    """Return the content of a message. Raises `DataError` for a part of Gemini's or Bedrock's that is no text."""
    for part in content if isinstance(content, list) else ():
        if isinstance(part, Mapping) and "text" not in part and "type" not in part:
            raise bad_record(where, f"message {number} has a part that is no text: {', '.join(map(str, part))[:60]}")
    return joined_parts(content)


def joined_parts(content: Any) -> Any:
    """Return a list of objects that have a text alone, as Bedrock's and Gemini's are, as one text; others stay."""
    if (
        not isinstance(content, list)
        or not content
        or not all(
            isinstance(part, Mapping) and set(part) == {"text"} and isinstance(part["text"], str) for part in content
        )
    ):
        return content
    return "".join(part["text"] for part in content)


def messages_of_text(text: str, where: str) -> list[Message]:
    """Return a text with ``Human:`` and ``Assistant:``, each after an empty line, as messages (Bai et al. 2022).

    Raises:
        DataError: it does not begin with one of the two.
    """
    messages = speakers(text)
    if not messages:
        raise bad_record(where, "a text that does not begin with 'Human:' or 'Assistant:'")
    return messages


def speakers(text: str) -> list[Message]:
    """Return the same, or nothing where the text does not begin with a speaker."""
    first, *parts = _SPEAKER.split(f"\n\n{text.lstrip()}")
    if first or not parts:
        return []
    roles = {"Human": "user", "Assistant": "assistant"}
    said = zip(parts[::2], parts[1::2], strict=True)
    return [{"role": roles[speaker], "content": words.strip()} for speaker, words in said]


def spoken_before(text: str) -> list[Message]:
    """Return what is said in a text in which two speak and the assistant is next, as prompts of such texts are.

    Nothing of a text that does not begin after an empty line, or end with ``Assistant:``: it may be one about speakers.
    """
    messages = speakers(text)
    answered = len(messages) > 1 and messages[-1] == {"role": "assistant", "content": ""}
    return messages[:-1] if answered else messages if text.startswith("\n\n") else []


def at(where: str, act: Callable[[], Any]) -> Any:
    """Return what ``act`` does; an error, one of the chat template too, is told with the place."""
    try:
        return act()
    except OrreryError as error:
        raise type(error)(f"{where}: {error.message}", error.hint) from error


def _with_calls(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message of OpenAI's form; the one call of its older form is written as the newer has them."""
    said = dict(item)
    call = said.pop("function_call", None)
    return said if not call else {**said, "tool_calls": [{"type": "function", "function": call}]}
