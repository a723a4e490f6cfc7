"""What each token adds to a text, in bytes: by which answers are watched while they are written."""

from orrery.errors import UsageError
from orrery.text.pieces import context_free
from orrery.text.tokenizer import Tokenizer

BLANK = "\N{LOWER ONE EIGHTH BLOCK}"
"""What SentencePiece writes for a blank."""


def spellings(tokenizer: Tokenizer) -> list[bytes]:
    """Return the bytes that each id adds behind other text; none for control tokens.

    Raises:
        UsageError: what a token adds depends on its neighbours (WordPiece).
    """
    if context_free(tokenizer.definition):
        by_id = list(tokenizer.pieces)
    elif tokenizer.byte_pieces or _sentencepiece(tokenizer):
        by_id = [_spelled(tokenizer, id) for id in range(tokenizer.size)]
    elif _whole_words(tokenizer):
        by_id = [f" {tokenizer.token(id)}".encode() for id in range(tokenizer.size)]
    else:
        kind = tokenizer.definition["model"]["type"]
        raise UsageError(
            f"what a token of this {kind} tokenizer adds depends on its neighbours",
            "forms and bad words need byte-level BPE, characters, SentencePiece or whole words",
        )
    return [b"" if id in tokenizer.control else spelling for id, spelling in enumerate(by_id)]


def drops_first_blank(tokenizer: Tokenizer) -> bool:
    """Return whether a blank that opens an answer is left out of its text."""
    return not context_free(tokenizer.definition)


def _sentencepiece(tokenizer: Tokenizer) -> bool:
    decoder = tokenizer.definition.get("decoder") or {}
    steps = [decoder, *decoder.get("decoders", [])]
    return any(step.get("type") == "Metaspace" for step in steps)


def _whole_words(tokenizer: Tokenizer) -> bool:
    """Return whether tokens are words, between which decoding puts blanks."""
    definition = tokenizer.definition
    return definition["model"]["type"] == "WordLevel" and definition.get("decoder") is None


def _spelled(tokenizer: Tokenizer, id: int) -> bytes:
    token = tokenizer.token(id)
    return bytes([int(token[3:5], 16)]) if id in tokenizer.byte_pieces else token.replace(BLANK, " ").encode()
