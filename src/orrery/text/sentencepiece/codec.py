"""SentencePiece's encoding and decoding of whole texts, id for id.

Paper: Kudo and Richardson 2018.
"""

import codecs
from collections.abc import Iterable
from functools import cached_property

from orrery.kernels.compiled import HAVE_NUMBA
from orrery.text.sentencepiece.file import BYTE, CONTROL, SPACE, UNIGRAM, UNKNOWN, SentencePieceModel, VocabularyPiece
from orrery.text.sentencepiece.merging import Merging
from orrery.text.sentencepiece.normaliser import Normaliser, Normalising
from orrery.text.sentencepiece.pieces import Cutter, Cutting, PlacedPiece
from orrery.text.sentencepiece.unigram import Unigram
from orrery.text.streams import EncodingStream

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"

PART = 1 << 18
"""Characters of a long text that are encoded at once."""

SOON = 1 << 14
"""Characters after which the compiled search pays for its start, about a second."""


class Coding(EncodingStream):
    """The encoding of one text that comes part by part."""

    def __init__(self, normalising: Normalising, cutting: Cutting) -> None:
        self._normalising = normalising
        self._cutting = cutting

    def push(self, text: str) -> list[int]:
        """Take more of the text; return the ids that nothing later can change."""
        return self._cutting.push(self._normalising.push(text, final=False), final=False)

    def finish(self) -> list[int]:
        """Return the ids that were still open at the end of the text."""
        return self._cutting.push(self._normalising.push("", final=True), final=True)


class Codec:
    """Text to ids and back; control pieces written in a text are text."""

    def __init__(self, model: SentencePieceModel) -> None:
        """Raises `ModelFileError` where the rules for normalisation are damaged."""
        self._model = model
        self._normaliser = Normaliser(model)
        self._cutter: Cutter = Unigram(model) if model.kind == UNIGRAM else Merging(model)
        self._seen = 0

    def normalise(self, text: str) -> str:
        """Return the text as it is cut into pieces."""
        return self._normaliser(text)[0]

    def begin(self, characters: int = SOON) -> EncodingStream:
        """Return the encoding of a text of about so many characters, which is given to it part by part."""
        return Coding(self._normaliser.begin(), self._fitting(characters).begin())

    def encode(self, text: str) -> list[int]:
        """Return the ids."""
        if len(text) <= PART:
            return self._fitting(len(text)).ids(self._normaliser.whole(text))
        stream = self.begin(len(text))
        ids: list[int] = []
        for start in range(0, len(text), PART):
            ids += stream.push(text[start : start + PART])
        return ids + stream.finish()

    def spans(self, text: str) -> list[PlacedPiece]:
        """Return each id with where its part of ``text`` starts and ends, what normalisation dropped after it too."""
        normal, origins = self._normaliser(text)
        cut = zip(*self._fitting(len(text)).cut(normal), strict=True)
        return [(id, origins[start], origins[end]) for id, start, end in cut]

    def surfaces(self, text: str) -> list[tuple[str, int, int]]:
        """Return what `spans` does, with the spelling of each piece, or of what is unknown, in place of its id."""
        normal, origins = self._normaliser(text)
        cut = zip(*self._fitting(len(text)).cut(normal), strict=True)
        pieces, unknown = self._model.pieces, self._model.unknown
        return [
            (normal[start:end] if id == unknown else pieces[id].text, origins[start], origins[end])
            for id, start, end in cut
        ]

    def _fitting(self, characters: int) -> Cutter:
        """Return what cuts a text: once there is enough to do, and where numba is there, the compiled search."""
        self._seen += characters
        compiled = HAVE_NUMBA and self._model.kind == UNIGRAM and self._seen >= SOON
        return self._compiled if compiled else self._cutter

    @cached_property
    def _compiled(self) -> Cutter:
        from orrery.text.sentencepiece.compiled import Compiled

        return Compiled(self._model)

    def decode(self, pieces: Iterable[VocabularyPiece]) -> str:
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
