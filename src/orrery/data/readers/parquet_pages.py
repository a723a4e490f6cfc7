"""What the pages of a Parquet file say they unpack to: its end, which says so too, need not tell the truth.

The library unpacks a page into as many bytes as the page's own header says, and fails where there are more. Headers are
structs in Thrift's compact protocol.
"""

from typing import Any, BinaryIO

_HEADER, _MOST_HEADER = 1 << 12, 1 << 24
"""Bytes that are read to find a header, which may hold statistics, and at most."""
_DEPTH = 16
_UNPACKED, _PACKED = 2, 3
_STOP, _TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = 0, 1, 2, 3, 7, 8, 9, 10, 11, 12
_WHOLE = (4, 5, 6)


class PageError(ValueError):
    """A page has no header that can be read."""


def unpacked_bytes(stream: BinaryIO, chunk: Any) -> int:
    """Return the bytes that the pages of a column chunk unpack to.

    Raises:
        PageError: one has no header, or says that it has less than no bytes.
    """
    at = chunk.data_page_offset
    if chunk.has_dictionary_page and 0 < (chunk.dictionary_page_offset or 0) < at:
        at = chunk.dictionary_page_offset
    end, total = at + chunk.total_compressed_size, 0
    while at < end:
        fields, length = _header(stream, at)
        unpacked, packed = fields.get(_UNPACKED, -1), fields.get(_PACKED, -1)
        if unpacked < 0 or packed < 0:
            raise PageError(f"the page at byte {at:,} has no size")
        total += unpacked
        at += length + packed
    return total


def _header(stream: BinaryIO, at: int) -> tuple[dict[int, int], int]:
    size = _HEADER
    while True:
        stream.seek(at)
        content = stream.read(size)
        reader = _Reader(content)
        try:
            return reader.struct(0), reader.at
        except IndexError:
            if len(content) < size or size >= _MOST_HEADER:
                raise PageError(f"the page at byte {at:,} has no header") from None
            size *= 16


class _Reader:
    """Reads one struct; an `IndexError` says that there are too few bytes."""

    def __init__(self, content: bytes) -> None:
        self._content, self.at = content, 0

    def struct(self, depth: int) -> dict[int, int]:
        """Return the whole numbers of a struct by their fields, and pass over everything else in it."""
        if depth > _DEPTH:
            raise PageError("a page's header is nested too deeply")
        numbers: dict[int, int] = {}
        number = 0
        while (first := self._byte()) != _STOP:
            delta, kind = first >> 4, first & 15
            number = number + delta if delta else self._whole()
            if kind in _WHOLE:
                numbers[number] = self._whole()
            elif kind not in (_TRUE, _FALSE):
                self._pass_over(kind, depth)
        return numbers

    def _pass_over(self, kind: int, depth: int) -> None:
        if kind in (_BYTE, _TRUE, _FALSE):
            self._jump(1)
        elif kind in _WHOLE:
            self._varint()
        elif kind == _DOUBLE:
            self._jump(8)
        elif kind == _BINARY:
            self._jump(self._varint())
        elif kind in (_LIST, _SET):
            first = self._byte()
            self._several([first & 15], self._varint() if first >> 4 == 15 else first >> 4, depth)
        elif kind == _MAP:
            if count := self._varint():
                kinds = self._byte()
                self._several([kinds >> 4, kinds & 15], count, depth)
        elif kind == _STRUCT:
            self.struct(depth + 1)
        else:
            raise PageError(f"a page's header holds a value of the unknown kind {kind}")

    def _several(self, kinds: list[int], count: int, depth: int) -> None:
        for _ in range(count):
            for kind in kinds:
                self._pass_over(kind, depth + 1)

    def _byte(self) -> int:
        self.at += 1
        return self._content[self.at - 1]

    def _jump(self, count: int) -> None:
        self.at += count
        if self.at > len(self._content):
            raise IndexError

    def _varint(self) -> int:
        value = 0
        for place in range(10):
            byte = self._byte()
            value |= (byte & 0x7F) << (7 * place)
            if byte < 0x80:
                return value
        raise PageError("a number in a page's header does not end")

    def _whole(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)
