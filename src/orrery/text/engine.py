"""What encodes and decodes for a `Tokenizer`: the library, or SentencePiece's own rules for a model of its."""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from itertools import accumulate
from typing import Any

import tokenizers

from orrery.errors import ModelFileError
from orrery.text.sentencepiece import export
from orrery.text.sentencepiece.codec import Codec
from orrery.text.sentencepiece.file import CONTROL, NORMAL, SentencePieceModel, VocabularyPiece
from orrery.text.streams import EncodingStream

BLANK = "▁"
"""What SentencePiece writes for a blank."""

Span = tuple[int, int, int]
"""An id, and where its part of the text starts and ends."""


class TextEngine(ABC):
    """Text to ids and back, without any check of what is given."""

    @abstractmethod
    def encode_control(self, text: str) -> list[int]:
        """Return the ids of a text whose control tokens are control tokens."""

    @abstractmethod
    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids of each text, whose control tokens are only text."""

    @abstractmethod
    def begin(self) -> EncodingStream | None:
        """Return the encoding of a text that comes part by part, or None where it must come whole."""

    @abstractmethod
    def spans(self, text: str) -> list[Span]:
        """Return the ids as `encode_batch` does, and where each stands."""

    @abstractmethod
    def word_numbers(self, text: str) -> list[int | None]:
        """Return the number of the word of each id of `spans`."""

    @abstractmethod
    def decode(self, ids: Sequence[int], special: bool) -> str:
        """Return the text, with the control tokens if ``special``."""

    @abstractmethod
    def normalise(self, text: str) -> str:
        """Return the text as it is cut into pieces."""


def engine_of(content: str, definition: Mapping[str, Any], library: tokenizers.Tokenizer) -> TextEngine:
    """Return what runs a tokenizer.json, given as text, as JSON and as the library has read it.

    Raises `ModelFileError` where it contradicts the SentencePiece model in it.
    """
    model = export.model_of(definition)
    if model is None:
        return _Library(content, library)
    return (_Numbered if export.NUMBERED in definition["model"] else _SentencePiece)(model, definition)


@contextmanager
def panics_told() -> Iterator[None]:
    """Make an ordinary error of a panic of the library's Rust side, which is no `Exception`."""
    try:
        yield
    except (Exception, KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:
        reason = " ".join(str(error).split())[:200]
        hint = "give another text, or another tokenizer"
        raise ModelFileError(f"the tokenizer fails on a text: {reason}", hint) from None


class _Library(TextEngine):
    """The `tokenizers` library."""

    def __init__(self, content: str, library: tokenizers.Tokenizer) -> None:
        self._content = content
        self._library = library

    def encode_control(self, text: str) -> list[int]:
        with panics_told():
            return self._controls.encode(text, add_special_tokens=False).ids

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        # The fast form keeps no offsets: half the time, a tenth of the memory.
        with panics_told():
            return [encoding.ids for encoding in self._library.encode_batch_fast(list(texts), add_special_tokens=False)]

    def begin(self) -> None:
        return None

    def spans(self, text: str) -> list[Span]:
        with panics_told():
            encoding = self._library.encode(text, add_special_tokens=False)
        return [(id, *place) for id, place in zip(encoding.ids, encoding.offsets, strict=True)]

    def word_numbers(self, text: str) -> list[int | None]:
        with panics_told():
            return list(self._library.encode(text, add_special_tokens=False).word_ids)

    def decode(self, ids: Sequence[int], special: bool) -> str:
        with panics_told():
            return self._library.decode(list(ids), skip_special_tokens=not special)

    def normalise(self, text: str) -> str:
        with panics_told():
            return text if self._library.normalizer is None else self._library.normalizer.normalize_str(text)

    @cached_property
    def _controls(self) -> tokenizers.Tokenizer:
        """A second one that recognises control tokens: switching one is not thread-safe."""
        library = tokenizers.Tokenizer.from_str(self._content)
        library.no_padding()
        library.no_truncation()
        return library


class _SentencePiece(TextEngine):
    """SentencePiece's rules, with its ids in every case."""

    def __init__(self, model: SentencePieceModel, definition: Mapping[str, Any]) -> None:
        self._model = model
        self._scheme = _blank_before(definition)
        self._added: dict[str, int] = {token["content"]: token["id"] for token in definition.get("added_tokens") or []}
        self._special = frozenset(self._added.values())
        self._strips = frozenset(
            token["content"] for token in definition.get("added_tokens") or [] if token.get("rstrip")
        )

    def encode_control(self, text: str) -> list[int]:
        ids: list[int] = []
        before = ""
        for place, part in enumerate(self._marks.split(text) if self._added else [text]):
            codec = self._later if place else self._codec
            if part in self._added:
                ids.append(self._added[part])
            else:
                ids += codec.encode(part.lstrip() if before in self._strips else part)
            before = part
        return ids

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        return [self._codec.encode(text) for text in texts]

    def begin(self) -> EncodingStream:
        return self._codec.begin()

    def spans(self, text: str) -> list[Span]:
        return self._codec.spans(text)

    def word_numbers(self, text: str) -> list[int | None]:
        return _words([self._pieces[id].text for id, _, _ in self._codec.spans(text)])

    def decode(self, ids: Sequence[int], special: bool) -> str:
        return self._codec.decode(self._pieces[id] for id in ids if special or id not in self._special)

    def normalise(self, text: str) -> str:
        return self._codec.normalise(text)

    @cached_property
    def _codec(self) -> Codec:
        return Codec(self._unprefixed if self._scheme == "never" else self._model)

    @cached_property
    def _later(self) -> Codec:
        """What encodes a text behind a control token."""
        return Codec(self._unprefixed) if self._scheme == "first" else self._codec

    @property
    def _unprefixed(self) -> SentencePieceModel:
        return replace(self._model, prefixed=False)

    @cached_property
    def _marks(self) -> re.Pattern[str]:
        return re.compile(f"({'|'.join(map(re.escape, sorted(self._added, key=len, reverse=True)))})")

    @cached_property
    def _pieces(self) -> dict[int, VocabularyPiece]:
        pieces = dict(enumerate(self._model.pieces))
        for content, id in self._added.items():  # one may stand for a piece that the model only keeps a place for
            if id not in pieces or pieces[id].text != content:
                pieces[id] = VocabularyPiece(content, 0.0, CONTROL)
        return pieces


class _Numbered(TextEngine):
    """SentencePiece's rules, with the numbers of a list beside the model."""

    def __init__(self, model: SentencePieceModel, definition: Mapping[str, Any]) -> None:
        listed = definition["model"]
        self._codec = Codec(model)
        self._ids = {name: id for id, (name, _) in enumerate(listed["vocab"])}
        self._unknown: int = listed["unk_id"]
        self._opens = bool(listed[export.NUMBERED].get("opening"))
        added = definition.get("added_tokens") or []
        self._added: dict[str, int] = {token["content"]: token["id"] for token in added}
        self._special = frozenset(token["id"] for token in added if token.get("special"))
        self._names = {id: name for name, id in (self._ids | self._added).items()}
        self._kinds = {piece.text: piece.kind for piece in model.pieces} | dict.fromkeys(self._added, CONTROL)

    def encode_control(self, text: str) -> list[int]:
        parts = self._marks.split(text)
        return [id for part in parts for id in ([self._added[part]] if part in self._added else self._encode(part))]

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        return [self._encode(text) for text in texts]

    def begin(self) -> None:
        return None

    def spans(self, text: str) -> list[Span]:
        return [(self._ids.get(name, self._unknown), start, end) for name, start, end in self._surfaces(text)]

    def word_numbers(self, text: str) -> list[int | None]:
        return _words([name for name, _, _ in self._surfaces(text)])

    def decode(self, ids: Sequence[int], special: bool) -> str:
        names = [self._names[id] for id in ids if special or id not in self._special]
        return self._codec.decode(VocabularyPiece(name, 0.0, self._kinds.get(name, NORMAL)) for name in names).strip()

    def normalise(self, text: str) -> str:
        return self._codec.normalise(text)

    def _encode(self, text: str) -> list[int]:
        return [id for id, _, _ in self.spans(text)]

    def _surfaces(self, text: str) -> list[tuple[str, int, int]]:
        """Return the spelling of each piece and where it stands, the language before a text for one of them."""
        end = text.find("<<") + 2 if self._opens and text.startswith(">>") and "<<" in text else 0
        behind = [(name, start + end, stop + end) for name, start, stop in self._codec.surfaces(text[end:])]
        return [(text[:end], 0, end), *behind] if end else behind

    @cached_property
    def _marks(self) -> re.Pattern[str]:
        return re.compile(f"({'|'.join(map(re.escape, sorted(self._added, key=len, reverse=True)))})")


def _words(names: Sequence[str]) -> list[int | None]:
    """Return the number of each piece's word: words begin with the mark of a blank, as Metaspace parts them."""
    starts = (name.startswith(BLANK) or not place for place, name in enumerate(names))
    return [number - 1 for number in accumulate(starts)]


def _blank_before(definition: Mapping[str, Any]) -> str:
    """Return which texts a tokenizer.json puts a blank before: "always", "first" or "never"; as its model where unsaid.

    Among the texts between control tokens, the first is the one that opens the whole.
    """
    steps = (definition.get("pre_tokenizer") or {}).get("pretokenizers", [])
    return next((step["prepend_scheme"] for step in steps if step["type"] == "Metaspace"), "always")
