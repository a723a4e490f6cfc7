"""Which part of a rendered conversation the assistant wrote, for templates that do not say it themselves."""

import re
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

from orrery.text.chat.spans.marks import Anchor, Keep, Marking, Seen, answers, contents, named

Conversation = Sequence[dict[str, Any]]
Attempt = Callable[[Conversation, bool], str | None]
"""From a conversation, and whether the assistant's next answer begins at its end, to its text; None: refused."""
Span = tuple[int, int]

_LONGEST_TOKEN = 1024
"""Characters of a control token, as `parse_tokenizer` bounds them."""


class AssistantSpans:
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
        levels = (_Level(self._attempt, self._control, self._messages, keep) for keep in (answers, named, contents))
        return next((spans for level in levels if (spans := level.spans(text, prompt)) is not None), None)


class _Shorter:
    """A conversation that ends before or with one of its answers, rendered when asked; None where that is refused."""

    def __init__(self, level: "_Level", place: int) -> None:
        self._level = level
        self._place = place

    @cached_property
    def asked(self) -> Seen | None:
        """Before the answer, where it is about to begin."""
        return self._level.render(self._level.marked[: self._place], True)

    @cached_property
    def bare(self) -> Seen | None:
        """Before the answer, as if the conversation ended there."""
        return self._level.render(self._level.marked[: self._place], False)

    @cached_property
    def turn(self) -> Seen | None:
        """Through the answer, where the next one is about to begin."""
        return self._level.render(self._level.marked[: self._place + 1], True)

    @cached_property
    def last(self) -> Seen | None:
        """Through the answer, as if the conversation ended there."""
        return self._level.render(self._level.marked[: self._place + 1], False)

    @cached_property
    def plain(self) -> Seen | None:
        """With another answer of one word."""
        probe = {"role": "assistant", "content": self._level.marking.around("x", self._place)}
        return self._level.render([*self._level.marked[: self._place], probe], False)


class _Level:
    """The search with marks around some of what is said."""

    def __init__(self, attempt: Attempt, control: re.Pattern[str], messages: Conversation, keep: Keep) -> None:
        self._attempt = attempt
        self._control = control
        self.marking = Marking()
        self.marked = self.marking.mark(messages, keep)
        self._prompts: dict[str, str] = {}

    def render(self, messages: Conversation, prompt: bool) -> Seen | None:
        text = self._attempt(messages, prompt)
        return None if text is None else self.marking.see(text)

    def spans(self, text: str, prompt: bool) -> list[Span] | None:
        whole = self.render(self.marked, prompt)
        if whole is None or whole.text != text:
            return None
        spans_found: list[Span] = []
        for place, message in enumerate(self.marked):
            if message["role"] != "assistant":
                continue
            span = self._span(whole, place, _Shorter(self, place))
            if span is None or span[0] < (spans_found[-1][1] if spans_found else 0):
                return None
            spans_found.append(span)
        return spans_found

    def _span(self, whole: Seen, place: int, shorter: _Shorter) -> Span | None:
        first, last = whole.first(place), whole.last(place)
        if first is None or last is None:
            return self._span_without_words(whole, place, shorter)
        if whole.holds_others(place, first, last) or self._is_repeated(whole, place, shorter):
            return None
        prompt = shorter.asked or shorter.bare
        anchor = whole.anchor(first, place)
        prompt_end = "" if prompt is None else prompt.after(anchor)
        if prompt_end is None:
            return None
        asks = self._asks(place, shorter)
        start = (
            first
            if prompt is None
            else self._start(whole.text[anchor.place : first], prompt_end, anchor, shorter, asks)
        )
        end = self._end(whole.text[last : whole.following(last)], place, shorter, prompt_end.removesuffix(asks))
        return None if start is None or end is None else (start, last + end)

    def _is_repeated(self, whole: Seen, place: int, shorter: _Shorter) -> bool:
        """Say whether later messages repeat words of one: there are more than when it was the last."""
        count = whole.count(place)
        if shorter.turn is not None and shorter.turn.count(place) >= count:
            return False
        return shorter.last is None or shorter.last.count(place) < count

    def _span_without_words(self, whole: Seen, place: int, shorter: _Shorter) -> Span | None:
        """Return the span of an answer with no text of its own, such as the call of a tool without arguments."""
        if shorter.asked is None:
            return None
        anchor = shorter.asked.anchor()
        begin, prompt_end = whole.find(anchor), shorter.asked.after(anchor) or ""
        after = whole.after(anchor) or ""
        if begin is None or not after.startswith(prompt_end):
            return None
        turn = shorter.turn and (shorter.turn.after(anchor) or "").removesuffix(self._asks(place, shorter))
        for tail in (turn, shorter.last and shorter.last.after(anchor)):
            if tail and tail.startswith(prompt_end) and after.startswith(tail):
                return begin + len(prompt_end), begin + len(prompt_end) + self._closed(tail[len(prompt_end) :])
        return None

    def _asks(self, place: int, shorter: _Shorter) -> str:
        """Return what the template writes to ask for an answer; it depends on whose message comes before."""
        before = self.marked[place - 1]["role"] if place else ""
        if before not in self._prompts:
            known = shorter.asked is not None and shorter.bare is not None
            prompted, bare = (shorter.asked.text, shorter.bare.text) if shorter.asked and shorter.bare else ("", "")
            self._prompts[before] = prompted[self._common(prompted, bare) :] if known else ""
        return self._prompts[before]

    def _start(self, between: str, prompt_end: str, anchor: Anchor, shorter: _Shorter, asks: str) -> int | None:
        """Return where a reply begins: after as much as its prompt writes, too."""
        same = self._common(between, prompt_end)
        if same < min(len(between), len(prompt_end)):
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

    def _end(self, after: str, place: int, shorter: _Shorter, other: str) -> int | None:
        """Return how much of the text after a reply's words is still the reply: its end token, closing brackets.

        ``other`` is how the message before it ends; so does an answer that ends in another way when it is the last.
        """
        turn = shorter.turn and shorter.turn.rest(place)
        turn = turn and turn.removesuffix(self._asks(place, shorter))
        if turn and after.startswith(turn) and self._control.search(turn):
            return self._closed(turn)
        tails = [tail for tail in (turn, shorter.last and shorter.last.rest(place)) if isinstance(tail, str)]
        if not tails:
            return None
        fitting = [tail for tail in tails if after.startswith(tail)]
        closed = [tail for tail in fitting if self._control.search(tail)]
        written = next(iter([*closed, *fitting]), None)
        if written is None:
            common = max(self._common(after, tail) for tail in tails)
            written = after[:common] + (other if after[common:].startswith(other) else "")
        return self._closed(written)

    def _closed(self, tail: str) -> int:
        """Return the length of a text through its last control token; without one, without white space at its end."""
        ends = [match.end() for match in self._control.finditer(tail)]
        return ends[-1] if ends else len(tail.rstrip())

    def _common(self, left: str, right: str) -> int:
        """Return the length of the common beginning, without half a control token."""
        low, high = 0, min(len(left), len(right))
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if left[low:middle] == right[low:middle] else (low, middle - 1)
        near = max(0, low - 2 * _LONGEST_TOKEN)
        for text in (left, right):
            spans = [match.span() for match in self._control.finditer(text, near, low + _LONGEST_TOKEN)]
            high = min([high, *(start for start, end in spans if start < low < end)])
        return high

    def _boundary(self, text: str) -> int:
        """Return where the last word of a text begins."""
        ends = [match.end() for match in self._control.finditer(text)]
        spaces = [place + 1 for place, character in enumerate(text) if character.isspace()]
        return max([0, *ends, *spaces])
