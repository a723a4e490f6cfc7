"""What can stand around texts: the frames of families, and the control tokens of chat formats."""

from typing import Literal, get_args

from orrery.errors import UsageError

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
