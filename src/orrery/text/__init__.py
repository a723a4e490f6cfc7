"""Text to token ids and back: tokenizers, their training, streaming decode."""

from typing import TYPE_CHECKING

from orrery.schema.lazy import lazily

if TYPE_CHECKING:
    from orrery.text.tokenizer import Tokenizer, load_tokenizer

__all__ = ["Tokenizer", "load_tokenizer"]


__getattr__ = lazily(__name__, {"tokenizer": __all__})
