"""A SentencePiece ``.model`` file: its pieces and what it says about texts.

Papers: Kudo and Richardson 2018 (SentencePiece); Kudo 2018 (unigram); Sennrich, Haddow and Birch 2016 (BPE).
"""

import math
import struct
from dataclasses import dataclass
from itertools import islice
from typing import Any

from orrery.errors import ModelFileError
from orrery.text.sentencepiece.protobuf import HINT, fields

SPACE = "\N{LOWER ONE EIGHTH BLOCK}"
UNKNOWN_SURFACE = " \N{DOUBLE QUESTION MARK} "
ELSEWHERE = "give the tokenizer.json that is published with the model"

MOST_FIELDS = 1_200_000
"""Pieces, mostly: published vocabularies have a quarter of a million at most."""

NORMAL, UNKNOWN, CONTROL, USER, UNUSED, BYTE = 1, 2, 3, 4, 5, 6
UNIGRAM, BPE = 1, 2


@dataclass(frozen=True)
class VocabularyPiece:
    """One entry of the vocabulary."""

    text: str
    score: float
    kind: int


@dataclass(frozen=True)
class SentencePieceModel:
    """What the file says; ``charsmap`` are its compiled normalisation rules, empty where it has none."""

    kind: int
    pieces: list[VocabularyPiece]
    charsmap: bytes
    prefixed: bool
    squeezed: bool
    unknown_surface: str

    @property
    def unknown(self) -> int:
        """The id of the unknown piece."""
        return next(id for id, piece in enumerate(self.pieces) if piece.kind == UNKNOWN)

    def ids(self, *kinds: int) -> dict[str, int]:
        """Return the ids of the pieces of these kinds, by their text."""
        return {piece.text: id for id, piece in enumerate(self.pieces) if piece.kind in kinds}


def read(content: bytes) -> SentencePieceModel:
    """Return the model.

    Raises `ModelFileError` where the file is damaged, contradicts itself, or is of a kind that cannot be run here.
    """
    fields_read = list(islice(fields(content), MOST_FIELDS + 1))
    if len(fields_read) > MOST_FIELDS:
        raise ModelFileError(f"it has more than {MOST_FIELDS:,} fields", HINT)
    pieces = [_piece(_message(value)) for number, value in fields_read if number == 1]
    training, normal = (
        {k: v for n, m in fields_read if n == number for k, v in fields(_message(m))} for number in (2, 3)
    )
    kind: Any = training.get(3, UNIGRAM)
    _check(pieces)
    _refuse(pieces, kind, training, normal)
    return SentencePieceModel(
        kind=kind,
        pieces=pieces,
        charsmap=_message(normal.get(2, b"")),
        prefixed=bool(normal.get(3, 1)),
        squeezed=bool(normal.get(4, 1)),
        unknown_surface=_message(training.get(44, UNKNOWN_SURFACE.encode())).decode(errors="replace"),
    )


def _message(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise ModelFileError("a number stands where a message should", HINT)
    return value


def _piece(content: bytes) -> VocabularyPiece:
    values = dict(fields(content))
    text, score, kind = values.get(1, b""), values.get(2, bytes(4)), values.get(3, NORMAL)
    if not isinstance(text, bytes) or not isinstance(score, bytes) or len(score) != 4 or not isinstance(kind, int):
        raise ModelFileError("a piece is no text with a score and a kind", HINT)
    try:
        return VocabularyPiece(text.decode(), struct.unpack("<f", score)[0], kind)
    except UnicodeDecodeError:
        raise ModelFileError(f"the piece {text!r} is not UTF-8", HINT) from None


def _check(pieces: list[VocabularyPiece]) -> None:
    """Refuse pieces that contradict each other."""
    seen: set[str] = set()
    for id, piece in enumerate(pieces):
        if not piece.text or not math.isfinite(piece.score):
            raise ModelFileError(f"piece {id} is empty or has the score {piece.score}", HINT)
        if piece.text in seen:
            raise ModelFileError(f"the piece {piece.text!r} stands twice", HINT)
        seen.add(piece.text)
    unknown = sum(piece.kind == UNKNOWN for piece in pieces)
    if unknown != 1:
        raise ModelFileError(f"it has {unknown} unknown pieces instead of one", HINT)
    missing = sorted({f"<0x{byte:02X}>" for byte in range(256)} - {p.text for p in pieces if p.kind == BYTE})
    if 0 < len(missing) < 256:
        raise ModelFileError(f"of the pieces for the 256 bytes {len(missing)} are missing, {missing[0]} first", HINT)


def _refuse(pieces: list[VocabularyPiece], kind: Any, training: dict[int, Any], normal: dict[int, Any]) -> None:
    """Refuse by name what a tokenizer.json has no equal for."""
    has = {"unused pieces" for piece in pieces if piece.kind == UNUSED}
    if kind not in (UNIGRAM, BPE):
        has.add(f"the model type {kind} instead of unigram (1) or BPE (2)")
    if any(len(piece.text) == 1 and piece.kind in (UNKNOWN, CONTROL) for piece in pieces):
        has.add("control pieces of one character")  # the engine has nowhere to cut one that a text spells
    if training.get(24):
        has.add("spaces at the ends of words")
    if not normal.get(5, 1):
        has.add("spaces that are not escaped")
    if has:
        raise ModelFileError(f"it has {' and '.join(sorted(has))}, which cannot be imported", ELSEWHERE)
