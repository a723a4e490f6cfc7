"""The one way from a conversation to ids: training, chat and the server all call `ChatTemplate.render`."""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

from orrery.errors import ModelFileError, OrreryError, UsageError
from orrery.text.chat.channels import ENDS, has_channels
from orrery.text.chat.folder import DEFAULT, TOOLS, read_source, read_templates
from orrery.text.chat.formats import FORMATS, ChatFormat
from orrery.text.chat.guard import guarded
from orrery.text.chat.jinja import JinjaTemplate
from orrery.text.chat.messages import Message, checked_messages
from orrery.text.chat.spans.encoding import ChatSpan, Rendered, encode_spans
from orrery.text.chat.tool_prompt import in_words
from orrery.text.kinds import no_chat
from orrery.text.tokenizer import Tokenizer

_READS_TOOLS = re.compile(r"\btools\b")


class ChatTemplate:
    """A tokenizer with the format of its chats: one of Orrery's own, or a Jinja template."""

    def __init__(
        self, tokenizer: Tokenizer, form: ChatFormat | JinjaTemplate, with_tools: JinjaTemplate | None = None
    ) -> None:
        """Take the format of chats, and of those in which there are tools where that is another one."""
        self.tokenizer = guarded(tokenizer)
        self.form = form
        self._with_tools = with_tools

    def render(
        self, messages: Sequence[Message], prompt: bool = False, replies: bool = False, **variables: Any
    ) -> Rendered:
        """Return the ids of a conversation, and with ``replies`` which of them the assistant wrote.

        ``prompt`` ends them where the assistant's next reply begins. ``variables`` (tools, documents, ...) go to a
        Jinja template. Raises `DataError` for messages that cannot be said in this format, `ModelFileError` for a
        template that fails, breaks a limit of the sandbox or doubles the start token.
        """
        return encode_spans(self.tokenizer, self.spans(messages, prompt, replies, **variables))

    def spans(
        self, messages: Sequence[Message], prompt: bool = False, replies: bool = False, **variables: Any
    ) -> list[ChatSpan]:
        """Return what `render` encodes: control tokens and texts; arguments and errors as there.

        Tools for which a template has no place are said in words, in the system's message or the first question, and
        so are calls and their results where it has no notation for them. Without ``tools`` a template is left to do
        with calls what it does in transformers; an empty list has them said.
        """
        tools = variables.get("tools")
        if self._with_tools and (tools or (tools is not None and any(map(calls_tools, messages)))):
            return ChatTemplate(self.tokenizer, self._with_tools).spans(messages, prompt, replies, **variables)
        read = self.messages(messages)
        others = {name: value for name, value in variables.items() if name != "tools"}
        if isinstance(self.form, JinjaTemplate):
            calls = "tool_calls" in self.form.source  # some have a notation for calls and expect the tools in words
            lost = tools is not None and not calls and any(map(calls_tools, read))
            if self.reads_tools or not (tools or lost):
                return self.form.spans(read, prompt, replies, **(variables if tools else others))
            with suppress(OrreryError):  # some templates know no system
                return self.form.spans(in_words(read, tools or (), True, calls), prompt, replies, **others)
            return self.form.spans(in_words(read, tools or (), False, calls), prompt, replies, **others)
        if given := [name for name, value in others.items() if value]:
            raise UsageError(f"the chat format {self.form.name} has no {given[0]}", "use the model's own template")
        return self.form.spans(in_words(read, tools or (), True, calls=False), prompt, self.tokenizer.read)

    @property
    def source(self) -> str:
        """The template as Jinja."""
        return self.form.source if isinstance(self.form, JinjaTemplate) else self.form.jinja()

    def messages(self, messages: Sequence[Message]) -> list[dict[str, Any]]:
        """Return the messages as the template reads them; errors as in `render`.

        Null fields are left out, and reasoning that stands between marks inside an answer becomes
        ``reasoning_content`` where the template wants it.
        """
        read = checked_messages(messages)
        return self.form.messages(read) if isinstance(self.form, JinjaTemplate) else read

    @cached_property
    def reads_tools(self) -> bool:
        """Whether the template has a place for the tools that there are."""
        return isinstance(self.form, JinjaTemplate) and _READS_TOOLS.search(self.form.source) is not None

    @cached_property
    def end(self) -> frozenset[int]:
        """The control token that ends an answer, where the template writes one; of channels those that end the last."""
        if has_channels(self.source):
            ends = (self.tokenizer.id(token) for token in ENDS)
            return frozenset(id for id in ends if id is not None)
        probe = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
        try:
            rendered = self.render(probe, replies=True)
        except OrreryError:  # a template that cannot say what was replied; the model's own end token remains
            return frozenset()
        reply_ids = [id for id, reply in zip(rendered.ids, rendered.reply, strict=True) if reply]
        # One inside the answer, such as the mark after its reasoning, ends nothing.
        return self.tokenizer.control & set(reply_ids[-1:])


def calls_tools(message: Message) -> bool:
    """Say whether a message holds calls of tools."""
    return bool(message.get("tool_calls"))


def chat_format(name: str, tokenizer: Tokenizer) -> ChatTemplate:
    """Return one of Orrery's own formats: chatml, gemma, llama-2, llama-3, mistral or zephyr."""
    return ChatTemplate(tokenizer, ChatFormat(name))


def choose_template(choice: str | Path, tokenizer: Tokenizer) -> ChatTemplate:
    """Return what ``--template`` means: the name of one of Orrery's own formats, or the file of a Jinja template.

    Raises `UsageError` where it is neither, `ModelFileError` for a file that is too large or no UTF-8.
    """
    if str(choice) in FORMATS:
        return chat_format(str(choice), tokenizer)
    if not isinstance(choice, str | Path) or not _is_file(Path(choice)):
        named = str(choice) if isinstance(choice, str | Path) else f"a {type(choice).__name__}"
        raise no_chat(named)
    return ChatTemplate(tokenizer, JinjaTemplate(read_source(Path(choice)), tokenizer))


def _is_file(file: Path) -> bool:
    try:
        return file.is_file()
    except OSError:  # a name too long, a folder that cannot be looked into
        return False


def template_of(folder: Path, templates: Mapping[str, str], tokenizer: Tokenizer, name: str = DEFAULT) -> ChatTemplate:
    """Return one of the templates that a model folder came with; it is compiled when it is first rendered.

    Raises `ModelFileError` where the folder has none of this name.
    """
    if name not in templates:
        others = f"; it has {', '.join(templates)}" if templates else ""
        raise ModelFileError(
            f"{folder} has no chat template {name!r}{others}",
            f"give one with `template=NAME`: {'|'.join(FORMATS)}, or a Jinja file; "
            "or put chat_template.jinja into the folder",
        )
    return form_of(templates, tokenizer, name)


def form_of(templates: Mapping[str, str], tokenizer: Tokenizer, name: str = DEFAULT) -> ChatTemplate:
    """Return one of several templates; beside the default one another may be that of chats with tools."""
    with_tools = templates.get(TOOLS) if name == DEFAULT else None
    own = None if with_tools is None else JinjaTemplate(with_tools, tokenizer)
    return ChatTemplate(tokenizer, JinjaTemplate(templates[name], tokenizer), own)


def load_chat_template(folder: str | Path, tokenizer: Tokenizer, name: str = DEFAULT) -> ChatTemplate:
    """Return the template of a model folder, as `read_templates` finds it.

    Where the folder names several, ``name`` chooses. Raises `ModelFileError` where there is none.
    """
    return template_of(Path(folder), read_templates(Path(folder)), tokenizer, name)
