"""Hugging Face chat templates: rendered in the sandbox, then cut into control tokens and ordinary text."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from orrery.errors import DataError, ModelFileError, UsageError
from orrery.text.chat import sandbox
from orrery.text.chat.calls import with_descriptions, with_short_ids, with_texts
from orrery.text.chat.guard import guarded
from orrery.text.chat.messages import ROLES, Message, check_leaves
from orrery.text.chat.reasoning import split_reasoning
from orrery.text.chat.spans.assistant_spans import AssistantSpans
from orrery.text.chat.spans.control_tokens import ControlTokenMarkers
from orrery.text.chat.spans.encoding import ChatSpan, Control, TextSpan
from orrery.text.chat.spans.placeholders import Placeholders
from orrery.text.tokenizer import Tokenizer

_NAMES = {
    "bos_token": "start", "eos_token": "end", "unk_token": "unknown", "pad_token": "pad", "mask_token": "mask",
    "cls_token": "class", "sep_token": "separator",
}  # fmt: skip
_GENERATION = re.compile(r"\{%-?\s*generation\b")
_SIGNED = re.compile(r"<\|[A-Za-z_]+\|>|\[/?[A-Z_]+\]|<</?[A-Z_]+>>")
_OF_ROLES = frozenset(f"<|{role}|>" for role in ROLES)


class JinjaTemplate:
    """The template that a model folder brings, for one tokenizer."""

    def __init__(self, source: str, tokenizer: Tokenizer) -> None:
        self.source = source
        self._tokenizer = tokenizer = guarded(tokenizer)
        roles = {name: tokenizer.roles[role] for name, role in _NAMES.items() if role in tokenizer.roles}
        self._tokens = {name: token for name, token in tokenizer.named.items() if name not in _NAMES} | roles
        self._sides = _stripping_sides(tokenizer)

    def spans(
        self, messages: Sequence[Message], prompt: bool, replies: bool = False, **variables: Any
    ) -> list[ChatSpan]:
        """Return the spans; ``variables`` (tools, documents, ...) go to the template.

        The template is rendered twice, with the messages disarmed and with placeholders for them: the control tokens
        must be the same. Raises `DataError` where they differ, for a message that a template turns into one.
        """
        _check_variables(variables)
        try:
            return self._written(messages, prompt, replies, variables)
        except ModelFileError:
            form = self._other_form(messages, prompt, variables)
            if form is None:
                raise
        return self._written(form[0], prompt, replies, form[1])

    def _written(
        self, messages: Sequence[Message], prompt: bool, replies: bool, variables: Mapping[str, Any]
    ) -> list[ChatSpan]:
        markers = ControlTokenMarkers(self._tokenizer)
        others = Placeholders(markers.spellings, self.source)
        # As transformers does: templates tell tools that are none from tools that are not mentioned.
        given = {"tools": None, "documents": None, **variables}
        said = {"messages": list(messages)} | {name: given[name] for name in ("tools", "documents")}
        blank = {name: others.of_setting(value) for name, value in variables.items()} | others.of_messages(said)
        call = {"add_generation_prompt": prompt, "generation_open": "", "generation_close": "", **self._tokens}
        fields = {**markers.disarm({"messages": list(messages), **given}), **call}
        marks = {"generation_open": markers.open, "generation_close": markers.close} if replies else {}
        text, expected = sandbox.render(self.source, [{**fields, **marks}, {**blank, **call}])
        self._refuse_forgery(markers, text.replace(markers.open, "").replace(markers.close, ""), expected)
        if replies and not _GENERATION.search(self.source):
            text = self._with_replies(markers, text, fields)
        return list(self._cut(markers, text))

    def messages(self, messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return the messages as this template reads them: reasoning apart from the answer where it wants that."""
        return split_reasoning(messages, self.source)

    def _other_form(
        self, messages: Sequence[Message], prompt: bool, variables: Mapping[str, Any]
    ) -> tuple[Sequence[Message], Mapping[str, Any]] | None:
        """Return messages and variables in the first other form that the template does not fail on.

        A service answers ``"content": null`` beside tool calls, and some templates join a content to their own words;
        Mistral's take identifiers of nine letters and digits alone; DeepSeek's join the arguments of a call as a text;
        gpt-oss's joins the description of every tool.
        """
        tools = variables.get("tools")
        filled = [{"content": "", **message} for message in messages]
        forms = [filled, with_texts(filled), with_short_ids(filled), with_texts(with_short_ids(filled))]
        if not any(message.get("tool_calls") for message in messages):
            forms = forms[:1]
        ways = [variables, {**variables, "tools": with_descriptions(tools)}] if tools else [variables]
        tried = [(form, given) for given in ways for form in forms]
        call = {"tools": None, "documents": None, **self._tokens, "add_generation_prompt": prompt}
        call |= {"generation_open": "", "generation_close": ""}
        texts = sandbox.attempt(self.source, [{**call, **given, "messages": form} for form, given in tried])
        return next((one for one, text in zip(tried, texts, strict=True) if text is not None), None)

    def _refuse_forgery(self, markers: ControlTokenMarkers, text: str, expected: str) -> None:
        if markers.controls(text) != markers.controls(expected):
            raise DataError(
                "a message changes the control tokens that the chat template writes",
                f"the messages hold parts of {', '.join(markers.spellings[:4])}...; take them out",
            )
        read, spelt = self._tokenizer.read, markers.restore(text)
        tags = _delimiters(self.source, spelt, expected, markers.spellings)
        if _count(tags, spelt, read) != _count(tags, expected, read):
            raise DataError(
                "a message holds a delimiter that the chat template writes as ordinary text",
                "take it out, or use a template whose delimiters are control tokens",
            )

    def _with_replies(self, markers: ControlTokenMarkers, text: str, fields: Mapping[str, Any]) -> str:
        """Mark the replies of a template without ``{% generation %}``."""

        def attempt(messages: Sequence[Message], prompt: bool) -> str | None:
            call = {**fields, "messages": messages, "add_generation_prompt": prompt}
            return sandbox.attempt(self.source, [call])[0]

        replies = AssistantSpans(attempt, markers.control, fields["messages"])
        spans = replies.spans(text, fields["add_generation_prompt"])
        if spans is None:
            raise UsageError(
                "this chat template does not say which tokens the assistant writes",
                "what it writes for an answer changes with other messages; put {% generation %} ... "
                "{% endgeneration %} around replies",
            )
        return markers.around(text, spans)

    def _cut(self, markers: ControlTokenMarkers, text: str) -> Iterator[ChatSpan]:
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
                yield TextSpan(markers.restore(part), reply)
                strip = False


def _check_variables(variables: Mapping[str, Any]) -> None:
    """Raise `DataError` for tools and documents of a kind that no template reads, `UsageError` for a reserved name."""
    check_leaves(variables)
    if reserved := sorted({"add_generation_prompt", "generation_open", "generation_close", *_NAMES} & set(variables)):
        raise UsageError(f"{reserved[0]} is no variable of a chat template", "it is set by prompt= or the tokenizer")
    for name in ("tools", "documents"):
        given = variables.get(name)
        if given is not None and not (isinstance(given, list | tuple) and all(isinstance(x, Mapping) for x in given)):
            raise DataError(f"{name} is no list of objects", "give JSON schemas, or objects with title and text")


def _stripping_sides(tokenizer: Tokenizer) -> dict[str, set[str]]:
    """Return for each control token the sides on which it swallows white space, as the tokenizers library does."""
    added = tokenizer.definition.get("added_tokens") or []
    return {token["content"]: {side for side in ("lstrip", "rstrip") if token.get(side)} for token in added}


def _delimiters(source: str, text: str, harmless: str, controls: Collection[str]) -> set[str]:
    """Return the plain delimiters of a template: those in its source, and in its text for these and harmless messages.

    One that stands in the text for harmless messages alone was put together with what they say. A template that writes
    ``<|user|>`` as ordinary text would write any role so.
    """
    delimiters = set(_SIGNED.findall(source)) | (set(_SIGNED.findall(harmless)) & set(_SIGNED.findall(text)))
    return (delimiters | (_OF_ROLES if delimiters & _OF_ROLES else set())) - set(controls)


def _count(tags: Collection[str], text: str, read: Callable[[str], str]) -> list[int]:
    """Return how often each tag stands in a text, both as the tokenizer reads them; no tags cost nothing."""
    seen = read(text) if tags else ""
    return [seen.count(read(tag)) for tag in sorted(tags)]
