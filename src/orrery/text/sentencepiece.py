"""A SentencePiece ``.model`` as a tokenizer.json.

Papers: Kudo and Richardson 2018 (SentencePiece); Kudo 2018 (unigram); Sennrich, Haddow and Birch 2016 (BPE).

Differs from SentencePiece: path scores are summed in float64, where the sums of its float32 scores are exact; it rounds
each sum to float32, so of two segmentations with equal scores what stands before them decides, and the other one can
come out. A control token written in a text is cut inside, to keep it from being matched. A user-defined piece is found
after normalisation instead of before, so one that normalisation changes is refused.
"""

import math
import re
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

from orrery.errors import ModelFileError
from orrery.text import charsmap
from orrery.text.protobuf import HINT, fields

SPACE = "\N{LOWER ONE EIGHTH BLOCK}"
UNKNOWN_SURFACE = " \N{DOUBLE QUESTION MARK} "
ELSEWHERE = "give the tokenizer.json that is published with the model"

NORMAL, UNKNOWN, CONTROL, USER, UNUSED, BYTE = 1, 2, 3, 4, 5, 6
UNIGRAM, BPE = 1, 2

USER_SCORE = -0.1
"""What SentencePiece gives a user-defined piece in a path, so that it wins over all others."""


@dataclass(frozen=True)
class Piece:
    """One entry of the vocabulary."""

    text: str
    score: float
    kind: int


def definition(content: bytes) -> str:
    """Return the tokenizer.json of a SentencePiece model.

    Raises `ModelFileError` where the file is damaged, contradicts itself, or asks for what the engine cannot do.
    """
    found = list(fields(content))
    pieces = [_piece(_message(value)) for number, value in found if number == 1]
    training, normal = ({k: v for n, m in found if n == number for k, v in fields(_message(m))} for number in (2, 3))
    kind = training.get(3, UNIGRAM)
    _check(pieces, kind, training, normal)
    engine = Tokenizer(_unigram(pieces) if kind == UNIGRAM else _bpe(pieces))
    engine.normalizer = normalizers.Sequence(_normalizers(normal))
    _check_user_defined(pieces, engine.normalizer)
    engine.pre_tokenizer = _apart(pieces) if kind == UNIGRAM else None
    engine.decoder = _decoder(pieces, bool(normal.get(3, 1)))
    engine.add_special_tokens([AddedToken(p.text, special=True, normalized=False) for p in pieces if p.kind == CONTROL])
    return engine.to_str()


def _message(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise ModelFileError("a number stands where a message should", HINT)
    return value


def _piece(content: bytes) -> Piece:
    values = dict(fields(content))
    text, score, kind = values.get(1, b""), values.get(2, bytes(4)), values.get(3, NORMAL)
    if not isinstance(text, bytes) or not isinstance(score, bytes) or len(score) != 4 or not isinstance(kind, int):
        raise ModelFileError("a piece is no text with a score and a kind", HINT)
    try:
        return Piece(text.decode(), struct.unpack("<f", score)[0], kind)
    except UnicodeDecodeError:
        raise ModelFileError(f"the piece {text!r} is not UTF-8", HINT) from None


def _check(pieces: list[Piece], kind: Any, training: dict[int, Any], normal: dict[int, Any]) -> None:
    """Refuse what contradicts itself, and by name what the engine has no equal for."""
    seen: set[str] = set()
    for id, piece in enumerate(pieces):
        if not piece.text or not math.isfinite(piece.score):
            raise ModelFileError(f"piece {id} is empty or has the score {piece.score}", HINT)
        if piece.text in seen:
            raise ModelFileError(f"the piece {piece.text!r} stands twice", HINT)
        seen.add(piece.text)
    unknown = [piece.text for piece in pieces if piece.kind == UNKNOWN]
    if len(unknown) != 1:
        raise ModelFileError(f"it has {len(unknown)} unknown pieces instead of one", HINT)
    has = {"unused pieces" for piece in pieces if piece.kind == UNUSED}
    if kind != UNIGRAM and any(piece.kind == USER for piece in pieces):
        has.add("user-defined pieces in a model that is not unigram")
    if kind not in (UNIGRAM, BPE):
        has.add(f"the model type {kind} instead of unigram (1) or BPE (2)")
    if any(len(piece.text) == 1 and piece.kind in (UNKNOWN, CONTROL) for piece in pieces):
        has.add("control pieces of one character")  # nowhere to cut one that a text spells
    if training.get(24):
        has.add("spaces at the ends of words")
    if not normal.get(5, 1):
        has.add("spaces that are not escaped")
    if has:
        raise ModelFileError(f"it has {' and '.join(sorted(has))}, which cannot be imported", ELSEWHERE)


def _check_user_defined(pieces: list[Piece], normalizer: normalizers.Normalizer) -> None:
    """Refuse a user-defined piece that normalisation changes: SentencePiece finds it before, the engine after."""
    for piece in pieces:
        # Between letters, where no blank is put before it or taken away.
        around = f"a{piece.text}a"
        if piece.kind == USER and not normalizer.normalize_str(around.replace(SPACE, " ")).endswith(around):
            raise ModelFileError(f"normalisation would change the user-defined piece {piece.text!r}", ELSEWHERE)


def _unigram(pieces: list[Piece]) -> models.Unigram:
    unknown = next(id for id, piece in enumerate(pieces) if piece.kind == UNKNOWN)
    # The least score sets what an unknown character costs, and only ordinary pieces count for it.
    best = max(piece.score for piece in pieces)
    scores = {USER: USER_SCORE} | dict.fromkeys((UNKNOWN, CONTROL, BYTE), best)
    vocabulary = [(piece.text, scores.get(piece.kind, piece.score)) for piece in pieces]
    return models.Unigram(vocabulary, unknown, any(piece.kind == BYTE for piece in pieces))


def _bpe(pieces: list[Piece]) -> models.BPE:
    """Merge whatever two pieces join to a third, best score first: the merges themselves are not in the file."""
    ids = {piece.text: id for id, piece in enumerate(pieces)}
    normal = {piece.text for piece in pieces if piece.kind == NORMAL}
    merges = [
        (left, right)
        for piece in sorted(pieces, key=lambda piece: -piece.score)
        if piece.kind == NORMAL
        for left, right in ((piece.text[:place], piece.text[place:]) for place in range(1, len(piece.text)))
        if left in normal and right in normal
    ]
    unknown = next(piece.text for piece in pieces if piece.kind == UNKNOWN)
    fallback = any(piece.kind == BYTE for piece in pieces)
    return models.BPE(ids, merges, unk_token=unknown, fuse_unk=True, byte_fallback=fallback)


def _normalizers(normal: dict[int, Any]) -> list[normalizers.Normalizer]:
    """Return SentencePiece's order: the rules, superfluous spaces, a space before the text, spaces made visible."""
    steps = charsmap.steps(normal[2]) if normal.get(2) else []
    if normal.get(4, 1):
        steps += [normalizers.Replace(Regex(" {2,}"), " "), normalizers.Replace(Regex(r"\A | \z"), "")]
    if normal.get(3, 1):
        steps += [normalizers.Prepend(" ")]
    return [*steps, normalizers.Replace(" ", SPACE)]


def _apart(pieces: list[Piece]) -> pre_tokenizers.PreTokenizer:
    """Cut texts that spell a control, byte or unknown piece, which the engine's unigram would match."""
    normal = {piece.text for piece in pieces if piece.kind == NORMAL}
    return pre_tokenizers.Split(
        Regex("|".join(_cut(piece.text, normal) for piece in pieces if piece.kind in (UNKNOWN, CONTROL, BYTE))),
        "merged_with_previous",
    )


def _cut(text: str, normal: Iterable[str]) -> str:
    """Return the pattern of a text up to a known character: a cut between unknown ones would count them twice."""
    places = range(1, len(text))
    place = next((place for place in places if text[place - 1] in normal or text[place] in normal), 1)
    return f"{re.escape(text[:place])}(?={re.escape(text[place:])})"


def _decoder(pieces: list[Piece], prefixed: bool) -> decoders.Decoder:
    unknown = next(piece.text for piece in pieces if piece.kind == UNKNOWN)
    steps = [decoders.Replace(unknown, UNKNOWN_SURFACE), decoders.ByteFallback(), decoders.Replace(SPACE, " ")]
    return decoders.Sequence([*steps, decoders.Fuse(), *([decoders.Strip(" ", 1, 0)] if prefixed else [])])
