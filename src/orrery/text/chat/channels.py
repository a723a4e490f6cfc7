"""Answers in channels, as gpt-oss writes them: what is thought, said and called are several messages of one answer.

Between control tokens each message has a head, which names its channel and whom it is for, and a text:
``<|channel|>analysis<|message|>...<|end|><|start|>assistant<|channel|>final<|message|>...<|return|>``
(https://cookbook.openai.com/articles/openai-harmony). A message to a function is a call of it.
"""

import json
import re
from collections.abc import Sequence
from typing import final

from orrery.text.tokenizer import Tokenizer

MARKS = ("<|start|>", "<|channel|>", "<|constrain|>", "<|message|>", "<|end|>", "<|call|>", "<|return|>")
ENDS = ("<|return|>", "<|call|>")
"""What ends an answer: ``<|end|>`` ends one of its messages alone."""
_PART = re.compile("(" + "|".join(map(re.escape, MARKS)) + ")")
_TO = re.compile(r"to=(?:functions\.)?([A-Za-z0-9_.-]+)")


def has_channels(source: str) -> bool:
    """Say whether a chat template writes answers in channels."""
    return "<|channel|>" in source and "<|message|>" in source


def said_in(tokenizer: Tokenizer, ids: Sequence[int]) -> str:
    """Return what an answer of these ids says, without what it thinks; a call is told in Hermes' notation."""
    watch = ChannelWatch()
    watch.push(tokenizer.decode(ids, special=True))
    watch.finish()
    return watch.whole[1]


@final
class ChannelWatch:
    """An answer in channels while it is streamed: its reasoning apart from what is said.

    It begins in the head of a message, behind ``<|start|>assistant``. A call becomes ``<tool_call>{...}</tool_call>``,
    which every reader of calls knows. What stands in no message is said.
    """

    def __init__(self) -> None:
        self._head: str | None = ""
        self._channel = self._to = ""
        self._held = ""
        self._thought = self._said = ""
        self._told: tuple[list[str], list[str]] = ([], [])

    @property
    def inside(self) -> bool:
        """Whether what comes now is reasoning, or the head of a message."""
        return self._head is not None or self._channel == "analysis"

    @property
    def whole(self) -> tuple[str, str]:
        """The reasoning and what is said, as far as they are certain."""
        return self._thought, self._said

    def push(self, piece: str) -> tuple[str, str]:
        """Return what has become certain of the reasoning, and of what is said; a mark comes in one piece."""
        for part in _PART.split(piece):
            if part in MARKS:
                self._mark(part)
            elif part and self._head is not None:
                self._head += part
            elif part and self._to:
                self._held += part
            elif part:
                self._tell(part)
        return self._taken()

    def finish(self) -> tuple[str, str]:
        """Return the rest of both."""
        if self._head is not None and not self._thought and not self._said and not _is_head(self._head):
            self._tell(self._head.lstrip())
        self._close()
        return self._taken()

    def _mark(self, mark: str) -> None:
        if mark == "<|message|>":
            self._open()
        elif mark == "<|channel|>" and self._head is not None:
            self._head += " channel="
        elif mark == "<|constrain|>" and self._head is not None:
            self._head += " "
        else:
            self._close()
            self._head = " channel=" if mark == "<|channel|>" else ""

    def _open(self) -> None:
        """Begin the text of a message, whose head is complete."""
        head, self._head = self._head or "", None
        channel, to = re.search(r"channel=\s*(\w+)", head), _TO.search(head)
        before = self._channel
        self._channel, self._to = channel[1] if channel else "final", to[1] if to else ""
        if before and before == self._channel and not self._to:
            self._tell("\n")

    def _close(self) -> None:
        """End the text of a message: that to a function is its call."""
        if self._to:
            try:
                given = json.loads(self._held)
            except (ValueError, RecursionError):
                given = self._held
            call = {"name": self._to, "arguments": given}
            self._channel = "commentary"
            self._tell(f"<tool_call>{json.dumps(call, ensure_ascii=False)}</tool_call>")
        self._held = self._to = ""

    def _tell(self, text: str) -> None:
        thinks = self._channel == "analysis"
        self._told[not thinks].append(text)
        self._thought += text if thinks else ""
        self._said += "" if thinks else text

    def _taken(self) -> tuple[str, str]:
        thought, said = ("".join(told) for told in self._told)
        self._told = ([], [])
        return thought, said


def _is_head(text: str) -> bool:
    """Say whether a text may be the head of a message: an answer that is held to a form has none."""
    return not text.strip() or "channel=" in text or _TO.search(text) is not None
