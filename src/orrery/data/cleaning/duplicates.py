"""Exact duplicates: of several documents with one text the first stays. 16 bytes a document, and room to grow."""

import hashlib
import struct

from orrery.data.corpora import Document
from orrery.errors import DataError

ENTRY = struct.Struct("<12sI")
"""96 bits of a digest, and the number of its entry, from 1; 0 is a free place."""

FREE = bytes(4)
MOST = 2**32 - 2
FULLEST = 3 / 4


class Numbered:
    """A table from digests to numbers below 2**32 in one array: open addressing, 16 bytes a place.

    It is at most three quarters full and doubles, so an entry takes 21 to 43 bytes, all told. Two of n
    different keys share their 96 bits with probability n**2 / 2**97: 6e-12 for a billion.
    """

    def __init__(self) -> None:
        self.size, self._places = 0, 64
        self._table = bytearray(self._places * ENTRY.size)

    def swap(self, key: bytes, number: int) -> int | None:
        """Store ``number`` for a key of at least 12 bytes, and return the number that was there, if any."""
        at = self._find(key[:12])
        earlier = self._number(at)
        ENTRY.pack_into(self._table, at, key[:12], number + 1)
        if earlier is None:
            self.size += 1
            if self.size > FULLEST * self._places:
                self._grow()
        return earlier

    def get(self, key: bytes) -> int | None:
        """Return the number of a key, None where it has none."""
        return self._number(self._find(key[:12]))

    def _number(self, at: int) -> int | None:
        number = ENTRY.unpack_from(self._table, at)[1]
        return number - 1 if number else None

    def _find(self, digest: bytes) -> int:
        """Return where the digest is, or the free place where it belongs."""
        place = int.from_bytes(digest[:8], "little") % self._places
        while True:
            at = place * ENTRY.size
            if self._table[at : at + 12] == digest or self._table[at + 12 : at + 16] == FREE:
                return at
            place = (place + 1) % self._places

    def _grow(self) -> None:
        old, self._places = self._table, 2 * self._places
        self._table = bytearray(self._places * ENTRY.size)
        for digest, number in ENTRY.iter_unpack(old):
            if number:
                ENTRY.pack_into(self._table, self._find(digest), digest, number)


class ExactDuplicates:
    """The rule that drops a document whose text came before, with the same meaning, by the sha256 of both.

    With ``whitespace=False`` runs of white space count as one space, and none at either end.
    """

    name = "exact duplicate"

    def __init__(self, *, whitespace: bool = True) -> None:
        self._first = Numbered()
        self._whitespace = whitespace

    def __call__(self, number: int, document: Document) -> str | None:
        """Return which document, by its number, has this text already; None for the first of its kind."""
        if number > MOST:
            raise DataError(f"more than {MOST:,} documents", "clean the corpus in parts")
        digest = hashlib.sha256(f"{self._normalised(document.text)}\0{document.meaning}".encode()).digest()
        first = self._first.get(digest)
        if first is None:
            self._first.swap(digest, number)
            return None
        return f"the same text as document {first:,}"

    def _normalised(self, text: str) -> str:
        return text if self._whitespace else " ".join(text.split())
