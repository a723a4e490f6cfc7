"""Delimiters that a Jinja template writes as ordinary text, such as Llama 2's ``[INST]`` and Zephyr's ``<|user|>``."""

import re
from collections.abc import Callable, Collection

from orrery.text.chat.messages import ROLES

_SIGNED = re.compile(r"<\|[A-Za-z_]+\|>|\[/?[A-Z_]+\]|<</?[A-Z_]+>>")
_OF_ROLES = frozenset(f"<|{role}|>" for role in ROLES)


def delimiters(source: str, text: str, harmless: str, controls: Collection[str]) -> set[str]:
    """Return the plain delimiters of a template: those in its source, and in its text for these and harmless messages.

    One that stands in the text for harmless messages alone was put together with what they say. A template that writes
    ``<|user|>`` as ordinary text would write any role so.
    """
    found = set(_SIGNED.findall(source)) | (set(_SIGNED.findall(harmless)) & set(_SIGNED.findall(text)))
    return (found | (_OF_ROLES if found & _OF_ROLES else set())) - set(controls)


def count(tags: Collection[str], text: str, read: Callable[[str], str]) -> list[int]:
    """Return how often each tag stands in a text, both as the tokenizer reads them; no tags cost nothing."""
    seen = read(text) if tags else ""
    return [seen.count(read(tag)) for tag in sorted(tags)]
