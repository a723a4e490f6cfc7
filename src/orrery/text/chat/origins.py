"""Who wrote what in a rendered conversation: the template or a message."""

import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from orrery.text.chat.messages import Message
from orrery.text.chat.render import ChatTemplate
from orrery.text.chat.segments import Control, Segment

Origin = Literal["control", "template", "message", "text"]
"""A control token; text of the template; text of a message; text of which the template hides who wrote it."""


@dataclass(frozen=True)
class Part:
    """A stretch of a rendered conversation that has one author."""

    origin: Origin
    text: str


def origins(chat: ChatTemplate, messages: Sequence[Message], prompt: bool = False) -> list[Part]:
    """Return the parts of a rendered conversation, each with who wrote it; errors as `ChatTemplate.render`.

    The conversation is rendered a second time with random marks around what the messages say. A template that looks
    into the messages may write something else then: its parts are called ``text``.
    """
    open, close = (f"{secrets.randbits(128):039d}" for _ in range(2))
    marks = re.compile(f"({open}|{close})")
    plain = _joined(chat.segments(messages, prompt))
    marked = _joined(chat.segments([_mark(message, open, close) for message in messages], prompt))
    if [Part(part.origin, marks.sub("", part.text)) for part in marked] != plain:
        return plain
    found: list[Part] = []
    said = False
    for part in marked:
        for piece in marks.split(part.text):
            if piece in (open, close):
                said = piece == open
            elif piece and part.origin == "control":
                found.append(part)
            elif piece:
                found.append(Part("message" if said else "template", piece))
    return found


def _joined(segments: Sequence[Segment]) -> list[Part]:
    """Return the segments with neighbouring texts as one."""
    found: list[Part] = []
    for segment in segments:
        if isinstance(segment, Control):
            found.append(Part("control", segment.token))
        elif found and found[-1].origin == "text":
            found[-1] = Part("text", found[-1].text + segment.text)
        elif segment.text:
            found.append(Part("text", segment.text))
    return found


def _mark(value: Any, open: str, close: str) -> Any:
    """Put the marks inside the white space that templates strip; roles and types stay, for templates branch on them."""
    if isinstance(value, str):
        core = value.strip()
        return value.replace(core, f"{open}{core}{close}", 1) if core else value
    if isinstance(value, Mapping):
        return {key: inner if key in ("role", "type") else _mark(inner, open, close) for key, inner in value.items()}
    return [_mark(inner, open, close) for inner in value] if isinstance(value, list | tuple) else value
