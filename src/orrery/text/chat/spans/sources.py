"""Who wrote what in a rendered conversation: the template or a message."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

from orrery.errors import OrreryError
from orrery.text.chat.messages import Message
from orrery.text.chat.render import ChatTemplate
from orrery.text.chat.spans.encoding import ChatSpan, Control
from orrery.text.chat.spans.marks import Keep, Marking, branched, identifiers

Origin = Literal["control", "template", "message", "text"]
"""A control token; text of the template; text of a message; text of which the template hides who wrote it."""


@dataclass(frozen=True)
class AuthoredSpan:
    """A stretch of a rendered conversation that has one author."""

    origin: Origin
    text: str


def authored_spans(
    chat: ChatTemplate, messages: Sequence[Message], prompt: bool = False, **variables: Any
) -> list[AuthoredSpan]:
    """Return the parts of a rendered conversation, each with who wrote it; errors as `ChatTemplate.render`.

    The conversation is rendered a second time with random marks around what the messages say. A template that looks
    into the messages may write something else then: its parts are called ``text``. What tools and documents say is
    called the template's.
    """
    read = chat.messages(messages)
    plain = _joined(chat.spans(read, prompt, **variables))
    tries = (_marked(chat, read, prompt, plain, keep, variables) for keep in (branched, identifiers))
    return next((parts for parts in tries if parts is not None), plain)


def _marked(
    chat: ChatTemplate,
    messages: Sequence[Message],
    prompt: bool,
    plain: list[AuthoredSpan],
    keep: Keep,
    variables: Mapping[str, Any],
) -> list[AuthoredSpan] | None:
    """Return the parts of the conversation with marks in it; None where the template writes something else for them."""
    marking = Marking()
    try:
        marked = _joined(chat.spans(marking.mark(messages, keep), prompt, **variables))
    except OrreryError:  # such as an id that is too long with marks around it
        return None
    if [AuthoredSpan(part.origin, marking.see(part.text).text) for part in marked] != plain:
        return None
    return [piece for part in marked for piece in _by_author(part, marking)]


def _by_author(part: AuthoredSpan, marking: Marking) -> list[AuthoredSpan]:
    """Cut a text where its author changes."""
    if part.origin == "control":
        return [part]
    seen = marking.see(part.text)
    ends = [0, *(mark.place for mark in seen.marks), len(seen.text)]
    authors: list[Origin] = ["template", *("message" if mark.opens else "template" for mark in seen.marks)]
    pieces = [AuthoredSpan(author, seen.text[a:b]) for author, (a, b) in zip(authors, pairwise(ends), strict=True)]
    return [piece for piece in pieces if piece.text]


def _joined(spans: Sequence[ChatSpan]) -> list[AuthoredSpan]:
    """Return the spans with neighbouring texts as one."""
    joined: list[AuthoredSpan] = []
    for span in spans:
        if isinstance(span, Control):
            joined.append(AuthoredSpan("control", span.token))
        elif joined and joined[-1].origin == "text":
            joined[-1] = AuthoredSpan("text", joined[-1].text + span.text)
        elif span.text:
            joined.append(AuthoredSpan("text", span.text))
    return joined
