"""Reasoning that stands between marks inside an answer: a field of its own, for templates and for clients."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

_MARKS = (
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<seed:think>", "</seed:think>"),
    ("[THINK]", "[/THINK]"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
    ("<|inner_prefix|>", "<|inner_suffix|>"),
)
_FIELD = "reasoning_content"


def split_reasoning(messages: Sequence[dict[str, Any]], source: str) -> list[dict[str, Any]]:
    """Return the messages with the reasoning of answers split off where the template wants it.

    A message cannot write control tokens, so the template would not find the closing mark in it. The opening mark may
    be missing: prompts of reasoning models end with it. A template that reads no ``reasoning_content`` but cuts answers
    at the mark drops their reasoning; what stands after the mark stays as it is.
    """
    marks = reasoning_marks(source)
    if marks is None:
        return list(messages)
    return [_split(message, *marks, _FIELD in source) for message in messages]


def reasoning_marks(source: str) -> tuple[str, str] | None:
    """Return between what a template wants the reasoning of answers to stand; nothing for one that knows of none."""
    for opening, closing in _MARKS:
        field = _FIELD in source and closing in source
        if field or re.search(r"split\(\s*[\"']" + re.escape(closing), source):
            return opening, closing
    return None


@dataclass(frozen=True)
class Reasoning:
    """How an answer tells its reasoning.

    Attributes:
        opening: what it begins with.
        closing: what it ends with.
        begun: whether the prompt ends with the opening mark, so that the answer begins inside.
    """

    opening: str
    closing: str
    begun: bool = False


@final
class ReasoningWatch:
    """An answer while it is streamed, its reasoning apart from what is said; without marks all of it is said.

    Blanks around the two parts belong to the marks and are left out.
    """

    def __init__(self, reasoning: Reasoning | None) -> None:
        self._marks = reasoning
        self._inside = reasoning is not None and reasoning.begun
        self._before = reasoning is not None and not reasoning.begun
        self._strips = self._inside
        self._held = ""
        self._thought = self._said = ""

    @property
    def inside(self) -> bool:
        """Whether what comes now is reasoning."""
        return self._inside

    @property
    def whole(self) -> tuple[str, str]:
        """The reasoning and what is said, as far as they are certain."""
        return self._thought, self._said

    def push(self, piece: str) -> tuple[str, str]:
        """Return what has become certain of the reasoning, and of what is said."""
        self._held += piece
        thought, said = self._cut(final=False)
        return self._told(thought, said)

    def finish(self) -> tuple[str, str]:
        """Return the rest of both: reasoning whose end never came stays reasoning."""
        thought, said = self._cut(final=True)
        return self._told(thought, said)

    def _told(self, thought: str, said: str) -> tuple[str, str]:
        self._thought += thought
        self._said += said
        return thought, said

    def _cut(self, final: bool) -> tuple[str, str]:
        """Return what is certain of the text that is held, and hold the rest."""
        marks, thought = self._marks, ""
        if marks is None:
            held, self._held = self._held, ""
            return "", held
        if self._before and not self._opened(marks.opening, final):
            return "", ""
        if self._inside:
            thought = self._inner(marks.closing, final)
            if self._inside:
                return thought, ""
        if self._strips:
            self._held = self._held.lstrip()
        self._strips = self._strips and not self._held
        held, self._held = self._held, ""
        return thought, held

    def _opened(self, opening: str, final: bool) -> bool:
        """Say whether it is known what the answer begins with."""
        begins = self._held.lstrip()
        if begins.startswith(opening):
            self._before, self._inside, self._strips = False, True, True
            self._held = begins[len(opening) :]
        elif final or not opening.startswith(begins):
            self._before = False
        return not self._before

    def _inner(self, closing: str, final: bool) -> str:
        """Return what is certain of the reasoning, leaving it where its end has come."""
        held = self._held.lstrip() if self._strips else self._held
        thought, mark, behind = held.partition(closing)
        if mark:
            self._inside, self._strips, self._held = False, True, behind
            return thought.rstrip()
        if final:
            self._held = ""
            return held.rstrip()
        ends = (n for n in range(min(len(closing), len(held)), 0, -1) if closing.startswith(held[-n:]))
        certain = len(held[: len(held) - next(ends, 0)].rstrip())
        self._held = held[certain:]
        self._strips = self._strips and not certain
        return held[:certain]


def _split(message: dict[str, Any], opening: str, closing: str, field: bool) -> dict[str, Any]:
    content = message.get("content")
    if message["role"] != "assistant" or not isinstance(content, str) or closing not in content or _FIELD in message:
        return message
    pieces = content.split(closing)
    if not field:
        return {**message, "content": pieces[-1]}
    thought = pieces[0].split(opening)[-1].strip("\n")
    return {**message, "content": pieces[-1].lstrip("\n"), "thinking": thought, _FIELD: thought}
