"""Hugging Face chat templates: rendered in the sandbox, then cut into control tokens and ordinary text."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from orrery.errors import DataError, UsageError
from orrery.text.chat import sandbox
from orrery.text.chat.delimiters import count, delimiters
from orrery.text.chat.guard import guarded
from orrery.text.chat.markers import Markers
from orrery.text.chat.messages import Message, check_leaves
from orrery.text.chat.segments import Control, Segment, Text
from orrery.text.tokenizer import Tokenizer

_NAMES = {"bos_token": "start", "eos_token": "end", "unk_token": "unknown", "pad_token": "pad", "mask_token": "mask"}
_GENERATION = re.compile(r"\{%-?\s*generation\b")


class JinjaTemplate:
    """The template that a model folder brings, for one tokenizer."""

    def __init__(self, source: str, tokenizer: Tokenizer) -> None:
        self.source = source
        self._tokenizer = tokenizer = guarded(tokenizer)
        self._tokens = {name: tokenizer.roles[role] for name, role in _NAMES.items() if role in tokenizer.roles}
        self._sides = _stripping_sides(tokenizer)

    def segments(
        self, messages: Sequence[Message], prompt: bool, replies: bool = False, **variables: Any
    ) -> list[Segment]:
        """Return the segments; ``variables`` (tools, documents, ...) go to the template.

        The template is rendered twice, with the messages disarmed and with stand-ins for them: the control tokens
        must be the same. Raises `DataError` where they differ, for a message that a template turns into one.
        """
        check_leaves(variables)
        markers = Markers(self._tokenizer)
        fields = markers.disarm({"messages": list(messages), **variables})
        said = {"messages": list(messages)} | {name: variables[name] for name in _said_in(variables)}
        blank = {name: markers.stand_in_setting(value) for name, value in variables.items()} | markers.stand_in(said)
        call = {"add_generation_prompt": prompt, "generation_open": "", "generation_close": "", **self._tokens}
        marks = {"generation_open": markers.open, "generation_close": markers.close} if replies else {}
        text, expected = sandbox.render(self.source, [{**fields, **call, **marks}, {**blank, **call}])
        unmarked = text.replace(markers.open, "").replace(markers.close, "")
        if markers.controls(unmarked) != markers.controls(expected):
            raise DataError(
                "a message changes the control tokens that the chat template writes",
                f"the messages hold parts of {', '.join(markers.spellings[:4])}...; take them out",
            )
        tags = delimiters(self.source, expected, markers.spellings)
        if count(tags, markers.restore(unmarked), self._tokenizer.read) != count(tags, expected, self._tokenizer.read):
            raise DataError(
                "a message holds a delimiter that the chat template writes as ordinary text",
                "take it out, or use a template whose delimiters are control tokens",
            )
        if replies and not _GENERATION.search(self.source):
            text = self._marked_by_prefixes(markers, text, {**fields, **call})
        return list(self._cut(markers, text))

    def _marked_by_prefixes(self, markers: Markers, text: str, call: Mapping[str, Any]) -> str:
        """Mark the replies of a template without ``{% generation %}``: what each assistant message adds."""
        messages = call["messages"]
        places = [place for place, message in enumerate(messages) if message["role"] == "assistant"]
        calls = [
            {**call, "messages": messages[: place + said], "add_generation_prompt": not said}
            for place in places
            for said in (0, 1)
        ]
        shorter = sandbox.render(self.source, calls) if calls else []
        if not all(text.startswith(part) for part in shorter):
            raise UsageError(
                "this chat template does not say which tokens the assistant writes",
                "its text changes with later messages; put {% generation %} ... {% endgeneration %} around replies",
            )
        pieces, reached = [], 0
        for before, through in zip(shorter[::2], shorter[1::2], strict=True):
            # Up to the last control token: the line break after it is not the assistant's.
            ends = [match.end() for match in markers.positions(through) if match.start() >= len(before)]
            end = ends[-1] if ends else len(through)
            pieces += [text[reached : len(before)], markers.open, text[len(before) : end], markers.close]
            reached = end
        return "".join([*pieces, text[reached:]])

    def _cut(self, markers: Markers, text: str) -> Iterator[Segment]:
        reply = False
        strip = False
        parts = markers.parts(text)
        for place, part in enumerate(parts):
            if part in (markers.open, markers.close):
                reply = part == markers.open
            elif part in markers.spellings:
                yield Control(part, reply)
                strip = "rstrip" in self._sides.get(part, ())
            elif part:
                following = next((p for p in parts[place + 1 :] if p not in ("", markers.open, markers.close)), "")
                part = part.lstrip() if strip else part
                part = part.rstrip() if "lstrip" in self._sides.get(following, ()) else part
                yield Text(markers.restore(part), reply)
                strip = False


def _said_in(variables: Mapping[str, Any]) -> list[str]:
    """Name the variables that a conversation brings; the others (reasoning effort, ...) steer the template."""
    return [name for name in ("tools", "documents") if variables.get(name)]


def _stripping_sides(tokenizer: Tokenizer) -> dict[str, set[str]]:
    """Return for each control token the sides on which it swallows white space, as the tokenizers library does."""
    added = tokenizer.definition.get("added_tokens") or []
    return {token["content"]: {side for side in ("lstrip", "rstrip") if token.get(side)} for token in added}
