"""The bytes that each id stands for, for tokenizers whose pieces mean the same wherever they are."""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import tokenizers

from orrery.errors import UsageError
from orrery.text.algorithms.characters import REPLACEMENT, UNKNOWN

Pieces = list[bytes]


def bpe_of_bytes(vocabulary: Mapping[str, int], merges: Sequence[Sequence[str]], whole: bool) -> dict[str, Any]:
    """Return the model of a tokenizer.json for byte-level BPE; with ``whole`` a word that is a token is taken whole."""
    none = dict.fromkeys(("dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix"))
    flags = {"fuse_unk": False, "byte_fallback": False, "ignore_merges": whole}
    return {"type": "BPE", **none, **flags, "vocab": vocabulary, "merges": merges}


def byte_alphabet() -> dict[str, int]:
    """Map the 256 visible characters of byte-level BPE to their bytes, as GPT-2's released code does.

    Bytes that print stand for themselves; the other 68 take the code points from 256 on, in order.
    """
    printing = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = [byte for byte in range(256) if byte not in printing]
    return {chr(byte): byte for byte in printing} | {chr(256 + place): byte for place, byte in enumerate(others)}


def context_free(definition: Mapping[str, Any]) -> bool:
    """Whether decoding is the concatenation of the bytes of each id: byte-level BPE and characters."""
    return _byte_level(definition) or _characters(definition)


def pieces_of(definition: Mapping[str, Any], engine: tokenizers.Tokenizer) -> Pieces:
    """Return the bytes of every id. Raises `UsageError` where they depend on the neighbours."""
    piece = piece_of(definition, engine)
    return [piece(id) for id in range(1 + max(engine.get_vocab(with_added_tokens=True).values()))]


def piece_of(definition: Mapping[str, Any], engine: tokenizers.Tokenizer) -> Callable[[int], bytes]:
    """Return what spells one id in bytes and remembers it. Raises `UsageError` where they depend on the neighbours."""
    if not context_free(definition):
        raise UsageError(
            f"the tokens of this {definition['model']['type']} tokenizer have no bytes of their own",
            "decode whole texts with decode()",
        )
    spell = _spell_bytes if _byte_level(definition) else _spell_character
    added = engine.get_added_tokens_decoder()
    return cache(lambda id: added[id].content.encode() if id in added else spell(engine.id_to_token(id) or ""))


def added_beyond_ascii(definition: Mapping[str, Any], engine: tokenizers.Tokenizer) -> frozenset[int]:
    """Return the ids of added tokens that the library decodes as if their letters were those of byte-level BPE.

    The é of an added ``café`` is text, and stands for itself; in a piece it would stand for the byte E9.
    """
    if not _byte_level(definition):
        return frozenset()
    return frozenset(id for id, token in engine.get_added_tokens_decoder().items() if not token.content.isascii())


def byte_fallback(definition: Mapping[str, Any]) -> frozenset[int]:
    """Return the ids whose pieces stand for one byte each, in tokenizers that spell unknown characters so."""
    decoder = definition.get("decoder") or {}
    if "ByteFallback" not in [step.get("type") for step in (decoder, *decoder.get("decoders", []))]:
        return frozenset()
    pieces = definition["model"]["vocab"]
    ids = pieces.items() if isinstance(pieces, dict) else ((piece[0], id) for id, piece in enumerate(pieces))
    return frozenset(id for piece, id in ids if _FALLBACK.fullmatch(piece))


_FALLBACK = re.compile("<0x[0-9A-Fa-f]{2}>")
_BYTE = byte_alphabet()


def _spell_bytes(token: str) -> bytes:
    # A piece with a character outside the alphabet was put into the vocabulary as plain text.
    return bytes(_BYTE[c] for c in token) if all(c in _BYTE for c in token) else token.encode()


def _spell_character(token: str) -> bytes:
    return token.replace(UNKNOWN, REPLACEMENT).encode()


def _byte_level(definition: Mapping[str, Any]) -> bool:
    decoder = definition.get("decoder") or {}
    return [step.get("type") for step in decoder.get("decoders", [decoder])] == ["ByteLevel"]


def _characters(definition: Mapping[str, Any]) -> bool:
    steps = (definition.get("decoder") or {}).get("decoders", [])
    return definition["model"]["type"] in ("WordLevel", "BPE", "Unigram") and [step.get("type") for step in steps] == [
        "Replace",
        "Fuse",
    ]
