"""The kinds of tokenizer that can be trained, one file each; `register` makes known what a program defines."""

from typing import TYPE_CHECKING

from orrery.schema.lazy import lazily

if TYPE_CHECKING:
    from orrery.text.kinds._kind import TOKENIZERS, TokenizerKind, register
    from orrery.text.kinds._surroundings import CHATS, FRAMES, Chat, Frame, no_chat

__all__ = ["CHATS", "FRAMES", "TOKENIZERS", "Chat", "Frame", "TokenizerKind", "no_chat", "register"]


__getattr__ = lazily(
    __name__,
    {
        "_kind": ("TOKENIZERS", "TokenizerKind", "register"),
        "_surroundings": ("CHATS", "FRAMES", "Chat", "Frame", "no_chat"),
    },
)
