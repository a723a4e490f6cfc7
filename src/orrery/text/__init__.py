"""Text to token ids and back: tokenizers, their training, streaming decode."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from orrery.text.tokenizer import Tokenizer, load_tokenizer

__all__ = ["Tokenizer", "load_tokenizer"]


def __getattr__(name: str) -> Any:
    """Import the tokenizer engine only when it is asked for."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from orrery.text import tokenizer

    return getattr(tokenizer, name)
