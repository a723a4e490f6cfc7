"""Conversations: the template that turns messages into ids, and the assistant's answer."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from orrery.errors import UsageError
from orrery.exchange.reading.read import Stored
from orrery.exchange.stored import tokenizer_of
from orrery.generation.row import Generation
from orrery.language_model.arguments import strings_of
from orrery.language_model.generate import continued
from orrery.language_model.guides import Demands
from orrery.language_model.sources import of_ids
from orrery.language_model.texts import limits_of
from orrery.text.chat.channels import has_channels, said_in
from orrery.text.chat.folder import with_default
from orrery.text.chat.messages import Message
from orrery.text.chat.render import ChatTemplate, choose_template, template_of


def chat_template(stored: Stored, choice: str | Path | None) -> ChatTemplate:
    """Return the template of the model's chats, or another; see ``LanguageModel.chat_template``."""
    if choice is not None:
        return choose_template(choice, tokenizer_of(stored))
    return template_of(stored.folder, stored.chat, tokenizer_of(stored))


def with_template(stored: Stored, choice: str | Path) -> Stored:
    """Return a model's parts with another template for its chats; see ``LanguageModel.with_template``."""
    form = chat_template(stored, choice)
    form.render([{"role": "user", "content": "a"}], prompt=True)  # what it lacks is told now, not at the first chat
    return replace(stored, chat=with_default(stored.chat, form.source))


def reply(
    stored: Stored,
    messages: Sequence[Message],
    template: ChatTemplate | str | Path | None,
    variables: Mapping[str, Any] | None,
    sampling: Mapping[str, Any],
    *,
    max_new_tokens: int,
    stop: str | Sequence[str],
    seed: int,
    stream: Callable[[str], None] | None,
) -> Generation:
    """Return the assistant's answer to a conversation; see ``LanguageModel.reply``."""
    chat = template if isinstance(template, ChatTemplate) else chat_template(stored, template)
    ids, context = chat.render(messages, prompt=True, **(variables or {})).ids, stored.model.spec.context
    if len(ids) > context:
        raise UsageError(
            f"the conversation of {len(ids):,} tokens is longer than this model's context of {context:,}",
            "leave out its earliest messages (/reset in orrery chat)",
        )
    demands, drawing = Demands.taken_from(sampling)
    limits = limits_of(stored, max_new_tokens, strings_of(stop), chat.end, demands)
    if has_channels(chat.source):
        # What is said is known behind the marks of its message, which decoding leaves out.
        answer = continued(stored, lambda: of_ids(stored, [ids]), limits, seed, None, drawing)[0]
        answer = replace(answer, text=said_in(chat.tokenizer, answer.ids))
        if stream is not None:
            stream(answer.text)
        return answer
    show = None if stream is None else lambda row, piece: stream(piece)
    return continued(stored, lambda: of_ids(stored, [ids]), limits, seed, show, drawing)[0]
