"""Which part of a rendered conversation the assistant wrote, for templates that do not say it themselves."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from orrery.text.chat.said import Anchor, Keep, Marking, Seen, answers, contents, named

Conversation = Sequence[dict[str, Any]]
Attempt = Callable[[Sequence[tuple[Conversation, bool]]], list[str | None]]
"""From conversations, each with whether the assistant's next answer begins at its end, to texts; None: refused."""
Span = tuple[int, int]

_PROBE = {"role": "assistant", "content": "x"}


@dataclass(frozen=True)
class _Shorter:
    """A conversation that ends before or with one of its answers, rendered; None where the template refuses it."""

    asked: Seen | None
    """Before the answer, where it is about to begin."""
    bare: Seen | None
    """Before the answer, as if the conversation ended there."""
    turn: Seen | None
    """Through the answer, where the next one is about to begin."""
    last: Seen | None
    """Through the answer, as if the conversation ended there."""
    plain: Seen | None
    """With another answer of one word."""


class Replies:
    """The replies of one conversation.

    A reply begins where the same conversation, cut before it and rendered as a prompt, ends; it ends with the last
    control token that follows its words where the next message is not yet written. The words are found by marks around
    them, since templates rewrite earlier messages when later ones come.
    """

    def __init__(self, attempt: Attempt, control: re.Pattern[str], messages: Conversation) -> None:
        self._attempt = attempt
        self._control = control
        self._messages = messages

    def spans(self, text: str, prompt: bool) -> list[Span] | None:
        """Return where the replies stand in a rendered text, in order; None where that cannot be told."""
        attempts = (self._spans(text, prompt, keep) for keep in (answers, named, contents))
        return next((spans for spans in attempts if spans is not None), None)

    def _spans(self, text: str, prompt: bool, keep: Keep) -> list[Span] | None:
        marking = Marking()
        (whole,) = self._render(marking, [(marking.mark(self._messages, keep), prompt)])
        if whole is None or whole.text != text:
            return None
        found: list[Span] = []
        for place, message in enumerate(self._messages):
            if message["role"] != "assistant":
                continue
            span = self._span(whole, place, self._shorter(marking, place, keep))
            if span is None or span[0] < (found[-1][1] if found else 0):
                return None
            found.append(span)
        return found

    def _shorter(self, marking: Marking, place: int, keep: Keep) -> _Shorter:
        through = marking.mark(self._messages[: place + 1], keep)
        plain = marking.mark([*self._messages[:place], _PROBE], keep)
        cut = [(through[:place], True), (through[:place], False), (through, True), (through, False), (plain, False)]
        return _Shorter(*self._render(marking, cut))

    def _render(self, marking: Marking, calls: Sequence[tuple[Conversation, bool]]) -> list[Seen | None]:
        return [None if text is None else marking.see(text) for text in self._attempt(calls)]

    def _span(self, whole: Seen, place: int, shorter: _Shorter) -> Span | None:
        first, last = whole.first(place), whole.last(place)
        if first is None or last is None:
            return self._span_without_words(whole, place, shorter)
        if whole.holds_others(place, first, last) or (shorter.last and shorter.last.count(place) < whole.count(place)):
            return None
        prompt = shorter.asked or shorter.bare
        anchor = whole.anchor(first, place)
        asked = "" if prompt is None else prompt.after(anchor)
        if asked is None:
            return None
        asks = self._asks(shorter)
        start = first if prompt is None else self._start(whole.text[anchor.place : first], asked, anchor, shorter, asks)
        rests = [seen.rest(place) for seen in (shorter.turn, shorter.last) if seen is not None]
        tails = [rest.removesuffix(asks) for rest in rests if rest is not None]
        end = self._end(whole.text[last : whole.following(last)], tails, asked.removesuffix(asks))
        return None if start is None or end is None else (start, last + end)

    def _span_without_words(self, whole: Seen, place: int, shorter: _Shorter) -> Span | None:
        """Return the span of an answer with no text of its own, such as the call of a tool without arguments."""
        if shorter.asked is None:
            return None
        anchor = shorter.asked.anchor()
        begin, asked = whole.find(anchor), shorter.asked.after(anchor) or ""
        after = whole.after(anchor) or ""
        if begin is None or not after.startswith(asked):
            return None
        turn = shorter.turn and (shorter.turn.after(anchor) or "").removesuffix(self._asks(shorter))
        final = shorter.last and shorter.last.after(anchor)
        for tail in (turn, final):
            if tail and tail.startswith(asked) and after.startswith(tail):
                return begin + len(asked), begin + len(asked) + self._closed(tail[len(asked) :])
        return None

    def _asks(self, shorter: _Shorter) -> str:
        """Return what the template writes to ask for an answer."""
        if shorter.asked is None or shorter.bare is None:
            return ""
        return shorter.asked.text[self._common(shorter.asked.text, shorter.bare.text) :]

    def _start(self, between: str, asked: str, anchor: Anchor, shorter: _Shorter, asks: str) -> int | None:
        """Return where a reply begins: after as much as its prompt writes, too."""
        same = self._common(between, asked)
        if same < min(len(between), len(asked)):
            same = self._boundary(between[:same])
            if not same:
                return None
        if not asks and shorter.plain is not None:
            same += self._header(between, same, shorter.plain, anchor)
        return anchor.place + same

    def _header(self, between: str, same: int, plain: Seen, anchor: Anchor) -> int:
        """Return the length of what a template that writes no prompts puts before every answer, such as its role."""
        begin = plain.find(anchor)
        other = "" if begin is None else plain.text[begin : plain.following(begin)]
        header = between[same : self._common(between, other)]
        return len(header) if header.strip() else 0

    def _end(self, after: str, tails: Sequence[str], other: str) -> int | None:
        """Return how much of the text after a reply's words is still the reply: its end token, closing brackets.

        ``other`` is how the message before it ends; so does an answer that ends in another way when it is the last.
        """
        if not tails:
            return None
        fitting = [tail for tail in tails if after.startswith(tail)]
        closed = [tail for tail in fitting if self._control.search(tail)]
        written = next(iter([*closed, *fitting]), None)
        if written is None:
            common = max(self._common(after, tail) for tail in tails)
            written = after[:common] + (other if after[common:].startswith(other) else "")
        return self._closed(written)

    def _closed(self, written: str) -> int:
        """Return the length of a text through its last control token; without one, without white space at its end."""
        ends = [found.end() for found in self._control.finditer(written)]
        return ends[-1] if ends else len(written.rstrip())

    def _common(self, left: str, right: str) -> int:
        """Return the length of the common beginning, without half a control token."""
        shorter = min(len(left), len(right))
        length = next((place for place in range(shorter) if left[place] != right[place]), shorter)
        for text in (left, right):
            cut = [found for found in self._control.finditer(text) if found.start() < length < found.end()]
            length = min([length, *(found.start() for found in cut)])
        return length

    def _boundary(self, text: str) -> int:
        """Return where the last word of a text begins."""
        ends = [found.end() for found in self._control.finditer(text)]
        spaces = [place + 1 for place, character in enumerate(text) if character.isspace()]
        return max([0, *ends, *spaces])
