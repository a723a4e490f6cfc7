"""Decode ids one at a time without ever showing half a character."""

import codecs

from orrery.text.pieces import context_free
from orrery.text.tidying import certain, tidied
from orrery.text.tokenizer import Tokenizer

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


class StreamDecoder:
    """Text piece by piece: the pieces joined are the full `Tokenizer.decode`, in linear time.

    A piece that ends inside a character holds its bytes back until the rest has come; U+FFFD appears only for
    bytes that no later byte can complete.
    """

    def __init__(self, tokenizer: Tokenizer, special: bool = False) -> None:
        self._stream: _Bytes | _Window = (
            _Bytes(tokenizer, special) if context_free(tokenizer.definition) else _Window(tokenizer, special)
        )
        self._tidy = tokenizer.tidy
        self._held = ""

    def push(self, id: int) -> str:
        """Return the text that has become certain with this id, possibly none."""
        piece = self._stream.push(id)
        return self._tidied(piece, final=False) if self._tidy else piece

    def finish(self) -> str:
        """Return what was held back; incomplete bytes become U+FFFD."""
        piece = self._stream.finish()
        return self._tidied(piece, final=True) if self._tidy else piece

    def _tidied(self, piece: str, final: bool) -> str:
        text = self._held + piece
        end = len(text) if final else certain(text)
        self._held = text[end:]
        return tidied(text[:end])


class _Bytes:
    """For tokenizers whose decoding is the concatenation of bytes: an incremental UTF-8 decoder."""

    def __init__(self, tokenizer: Tokenizer, special: bool) -> None:
        self._tokenizer = tokenizer
        self._special = special
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def push(self, id: int) -> str:
        return self._decoder.decode(self._tokenizer.decode_bytes([id], self._special))

    def finish(self) -> str:
        return self._decoder.decode(b"", final=True)


class _Window:
    """For tokenizers whose pieces depend on the piece before: decode a short window and show what it adds.

    Byte-fallback pieces are held back to the end of their run: one bad byte makes U+FFFD of every byte in it.
    """

    LONGEST_CHARACTER = 4

    def __init__(self, tokenizer: Tokenizer, special: bool) -> None:
        self._tokenizer = tokenizer
        self._special = special
        self._silent: frozenset[int] = frozenset() if special else tokenizer.control
        self._bytes = tokenizer.byte_pieces
        self._began = False
        self._shown: list[int] = []
        self._held: list[int] = []

    def push(self, id: int) -> str:
        if id in self._silent:
            return ""
        self._held.append(id)
        if id in self._bytes:
            return ""
        added = self._added()
        if added.endswith(REPLACEMENT) and len(self._held) < self.LONGEST_CHARACTER:
            return ""
        return self._show(added)

    def finish(self) -> str:
        return self._show(self._added())

    def _added(self) -> str:
        before = self._tokenizer.untidied(self._shown, self._special)
        return self._tokenizer.untidied(self._shown + self._held, self._special)[len(before) :]

    def _show(self, added: str) -> str:
        if added.strip() or (added and not self._began):  # blanks alone would be at the window's opening, and dropped
            self._shown, self._began = self._held, True
        elif (
            not self._began and not self._shown
        ):  # a first blank that is not shown still makes what follows not the first
            self._shown += self._held
        self._held = []
        return added
