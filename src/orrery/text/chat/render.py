"""The one way from a conversation to ids: training, chat and the server all call `ChatTemplate.render`."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from orrery.errors import ModelFileError, UsageError
from orrery.text.chat.formats import ChatFormat
from orrery.text.chat.jinja import JinjaTemplate
from orrery.text.chat.messages import Message, check_messages
from orrery.text.chat.segments import Rendered, Segment, encode_segments
from orrery.text.tokenizer import Tokenizer


class ChatTemplate:
    """A tokenizer with the format of its chats: one of Orrery's own, or a Jinja template."""

    def __init__(self, tokenizer: Tokenizer, form: ChatFormat | JinjaTemplate) -> None:
        self.tokenizer = tokenizer
        self.form = form

    def render(
        self, messages: Sequence[Message], prompt: bool = False, replies: bool = False, **variables: Any
    ) -> Rendered:
        """Return the ids of a conversation, and with ``replies`` which of them the assistant wrote.

        ``prompt`` ends them where the assistant's next reply begins. ``variables`` (tools, documents, ...) go to a
        Jinja template. Raises `DataError` for messages that cannot be said in this format, `ModelFileError` for a
        template that fails, breaks a limit of the sandbox or doubles the start token.
        """
        check_messages(messages)
        return encode_segments(self.tokenizer, self._segments(messages, prompt, replies, variables))

    def _segments(
        self, messages: Sequence[Message], prompt: bool, replies: bool, variables: dict[str, Any]
    ) -> list[Segment]:
        if isinstance(self.form, JinjaTemplate):
            return self.form.segments(messages, prompt, replies, **variables)
        if given := [name for name, value in variables.items() if value]:
            raise UsageError(f"the chat format {self.form.name} has no {given[0]}", "use the model's own template")
        return self.form.segments(messages, prompt)


def chat_format(name: str, tokenizer: Tokenizer) -> ChatTemplate:
    """Return one of Orrery's own formats: chatml, gemma, llama-2, llama-3, mistral or zephyr."""
    return ChatTemplate(tokenizer, ChatFormat(name))


def load_chat_template(folder: str | Path, tokenizer: Tokenizer, name: str = "default") -> ChatTemplate:
    """Return the template of a model folder: chat_template.jinja, else the one in tokenizer_config.json.

    Where the folder names several, ``name`` chooses. Raises `ModelFileError` where there is none.
    """
    folder = Path(folder)
    file = folder / "chat_template.jinja"
    try:
        source = file.read_text(encoding="utf-8") if file.is_file() else _configured(folder, name)
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"{folder}: the chat template cannot be read: {error}", "export the model again") from None
    if source is None:
        raise ModelFileError(
            f"{folder}: no chat template {name!r}", "add chat_template.jinja, or choose a format with its name"
        )
    return ChatTemplate(tokenizer, JinjaTemplate(source, tokenizer))


def _configured(folder: Path, name: str) -> str | None:
    file = folder / "tokenizer_config.json"
    config = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    found = config.get("chat_template") if isinstance(config, dict) else None
    if isinstance(found, list):
        named = {one.get("name"): one.get("template") for one in found if isinstance(one, dict)}
        found = named.get(name)
    return found if isinstance(found, str) else None
