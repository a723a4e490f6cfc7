"""SentencePiece's encoding and decoding of whole texts, id for id.

Paper: Kudo and Richardson 2018.
"""

import codecs
from collections.abc import Iterable, Iterator

from orrery.text.sentencepiece.file import BYTE, CONTROL, SPACE, UNIGRAM, UNKNOWN, Model, Piece
from orrery.text.sentencepiece.merging import Merging
from orrery.text.sentencepiece.normaliser import Normaliser
from orrery.text.sentencepiece.unigram import Segment, Unigram

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


class Codec:
    """Text to ids and back; control pieces written in a text are text."""

    def __init__(self, model: Model) -> None:
        """Raises `ModelFileError` where the rules for normalisation are damaged."""
        self._model = model
        self._normaliser = Normaliser(model)
        self._segments = Unigram(model) if model.kind == UNIGRAM else Merging(model)
        self._bytes = [id for _, id in sorted(model.ids(BYTE).items())]
        self._unknown = model.unknown

    def normalise(self, text: str) -> str:
        """Return the text as it is cut into pieces."""
        return self._normaliser(text)[0]

    def encode(self, text: str) -> Iterator[int]:
        """Yield the ids."""
        return (id for id, _, _ in self._spelled(self._normaliser(text)[0]))

    def spans(self, text: str) -> list[Segment]:
        """Return each id with where its part of ``text`` starts and ends, what normalisation dropped after it too."""
        normal, origins = self._normaliser(text)
        return [(id, origins[start], origins[end]) for id, start, end in self._spelled(normal)]

    def _spelled(self, normal: str) -> Iterator[Segment]:
        """Yield the segments with what is unknown in bytes, or as one id for a run of it."""
        run: Segment | None = None
        for segment in self._segments(normal):
            id, start, end = segment
            if id == self._unknown and not self._bytes:
                run = (id, run[1] if run else start, end)
                continue
            if run:
                yield run
                run = None
            if id == self._unknown:
                yield from ((self._bytes[byte], start, end) for byte in normal[start:end].encode())
            else:
                yield segment
        if run:
            yield run

    def decode(self, pieces: Iterable[Piece]) -> str:
        """Return the text of pieces, a control piece as it is spelled."""
        parts: list[str] = []
        waiting = bytearray()
        opening, begun = self._model.prefixed or self._model.squeezed, False
        for piece in pieces:
            if piece.kind == BYTE:
                waiting.append(int(piece.text[3:5], 16))
                continue
            if waiting:
                parts.append(_characters(bytes(waiting)))
                waiting.clear()
            opening = opening and not begun and not any(parts)
            shown = piece.text
            # Without the blank that encoding puts before the text; all blanks, where encoding keeps none there.
            if opening and piece.kind not in (CONTROL, UNKNOWN) and shown.startswith(SPACE):
                shown, begun = shown[1:], not self._model.squeezed
            unknown = piece.kind == UNKNOWN
            parts.append(self._model.unknown_surface if unknown else shown.replace(SPACE, " "))
        return "".join([*parts, _characters(bytes(waiting))])


def _characters(content: bytes) -> str:
    """Return the text, one U+FFFD for each byte that is of no character."""
    return content.decode(errors="orrery.each")


def _each(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return REPLACEMENT * (error.end - error.start), error.end


codecs.register_error("orrery.each", _each)
