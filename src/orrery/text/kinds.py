"""The kinds of tokenizer that can be trained, their sizes unless told otherwise, and what can stand around texts."""

from typing import Literal, get_args

from orrery.errors import UsageError

Kind = Literal["byte_bpe", "character", "word", "char_bpe", "wordpiece", "unigram", "bigram"]
KINDS: tuple[Kind, ...] = get_args(Kind)

Frame = Literal["bert", "roberta", "t5"]
FRAMES: tuple[Frame, ...] = get_args(Frame)
"""The families whose special tokens can be put around the texts of a trained tokenizer."""

Chat = Literal["chatml", "gemma", "llama-2", "llama-3", "mistral", "zephyr"]
CHATS: tuple[Chat, ...] = get_args(Chat)
"""The chat formats whose control tokens a trained tokenizer can have."""


def no_chat(choice: object) -> UsageError:
    """Return the error for what is neither a chat format nor the file of a template."""
    return UsageError(
        f"{str(choice)[:80]!r} is neither a chat format nor a file", f"the formats are {', '.join(CHATS)}"
    )


VOCABULARY: dict[Kind, int | None] = {
    "byte_bpe": 4096,
    "character": None,
    "word": None,
    "char_bpe": 4096,
    "wordpiece": 4096,
    "unigram": 4096,
    "bigram": 8192,
}
"""The number of ids where none is given; None keeps every character or word of the corpus."""
