"""Reasoning that stands between marks inside an earlier answer, given to templates as a field of its own."""

import re
from collections.abc import Sequence
from typing import Any

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
    for opening, closing in _MARKS:
        field = _FIELD in source and closing in source
        if field or re.search(r"split\(\s*[\"']" + re.escape(closing), source):
            return [_split(message, opening, closing, field) for message in messages]
    return list(messages)


def _split(message: dict[str, Any], opening: str, closing: str, field: bool) -> dict[str, Any]:
    content = message.get("content")
    if message["role"] != "assistant" or not isinstance(content, str) or closing not in content or _FIELD in message:
        return message
    pieces = content.split(closing)
    if not field:
        return {**message, "content": pieces[-1]}
    thought = pieces[0].split(opening)[-1].strip("\n")
    return {**message, "content": pieces[-1].lstrip("\n"), "thinking": thought, _FIELD: thought}
