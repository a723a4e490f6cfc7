"""What a Parquet file may become: a file of 1,639 bytes can say the same ten megabytes in a thousand rows."""

from pathlib import Path
from typing import Any

from orrery.data.readers.parquet_pages import PageError, unpacked_bytes
from orrery.errors import DataError

ROWS, ROWS_A_BYTE = 1_000_000, 16
"""Rows, and values of a column, whatever the size of the file; and for each of its bytes."""
BYTES, BYTES_A_BYTE = 256 << 20, 256
"""Bytes of values likewise: text is packed to a tenth, seldom to a fiftieth."""
BATCH = 64 << 20
"""Bytes of values that are read at once where one of them may stand in every row."""

_HINT = "read the file with the program that wrote it, and write fewer columns or rows, or plain text"


class Bounds:
    """What is left of what a file may become.

    Args:
        file: where it is, for messages.
        metadata: what its end says of it.
        wanted: the columns that are read; all where none is named.

    Attributes:
        texts: the columns of texts, by their numbers, that hold a text once for all the rows that it stands in.
        paths: what the library calls them.

    Raises:
        DataError: it says itself that it becomes more.
    """

    def __init__(self, file: Path, metadata: Any, wanted: tuple[str, ...]) -> None:
        self._file, self._size, self._metadata = file, file.stat().st_size, metadata
        self._most = BYTES + BYTES_A_BYTE * self._size
        self._left = self._most
        leaves = [metadata.schema.column(number) for number in range(len(metadata.schema))]
        read = [n for n, leaf in enumerate(leaves) if not wanted or leaf.path.partition(".")[0] in wanted]
        groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
        chunks = {number: [group.column(number) for group in groups] for number in read}
        self._width = sum(max(0, leaves[number].length) for number in read)
        values = max([0, *(sum(chunk.num_values for chunk in chunks[number]) for number in read)])
        for what, count, most in (
            ("rows", metadata.num_rows, ROWS + ROWS_A_BYTE * self._size),
            ("values in a column", values, ROWS + ROWS_A_BYTE * self._size),
            ("bytes", sum(one.total_uncompressed_size for number in read for one in chunks[number]), self._most),
            ("bytes of a fixed width", self._width * metadata.num_rows, self._most),
        ):
            if count > most:
                raise self._refusal(f"{count:,} {what}", most)
        self._check_pages([one for number in read for one in chunks[number]])
        self.texts = {n: leaves[n] for n in read if _is_text(leaves[n]) and any(map(_is_coded, chunks[n]))}
        self.paths = [leaf.path for leaf in self.texts.values()]

    def _check_pages(self, chunks: list[Any]) -> None:
        """Hold what the pages say of themselves: the library believes them, whatever the end of the file says."""
        total = 0
        with self._file.open("rb") as stream:
            for chunk in (one for one in chunks if one.num_values):
                try:
                    total += unpacked_bytes(stream, chunk)
                except (PageError, OverflowError, OSError) as error:
                    message = f"{self._file}: damaged, or not Parquet: {error}"
                    raise DataError(message, "fetch or write it again") from None
                if total > self._most:
                    raise self._refusal(f"pages of {total:,} bytes", self._most)

    def plan(self, arrow: Any, coded: Any, group: int, usual: int) -> tuple[int, bool]:
        """Return how many rows of a group are read at once, and whether with the texts as numbers of a list.

        The library holds all different texts of such a list; without, it writes each as often as it stands. Within
        lists nobody knows how often that is in a row.

        Args:
            arrow: the library.
            coded: the file, opened so that its texts are numbers.
            group: which group of rows.
            usual: rows at once where nothing speaks against it.
        """
        row, lists = self._width, False
        for leaf, chunk in ((leaf, self._metadata.row_group(group).column(n)) for n, leaf in self.texts.items()):
            column = next(coded.iter_batches(1, row_groups=[group], columns=[leaf.path])).column(0)
            longest = _longest(arrow, column)
            row += longest
            if leaf.max_repetition_level:
                small = chunk.total_uncompressed_size <= BATCH
                lists |= small or longest * chunk.num_values > self._most
        return max(1, min(usual, BATCH // max(1, row))), lists

    def count(self, size: int) -> None:
        """Take note of so many bytes of values more. Raises `DataError` beyond the bound."""
        self._left -= size
        if self._left < 0:
            raise self._refusal("more bytes in repeated texts", self._most)

    def _refusal(self, what: str, most: int) -> DataError:
        return DataError(f"{self._file}: {self._size:,} bytes hold {what}; at most {most:,} are read", _HINT)


def _is_text(leaf: Any) -> bool:
    """Whether values are texts or bytes of any length, which the library can leave as numbers into a list of them."""
    return leaf.physical_type == "BYTE_ARRAY" and leaf.logical_type.type in ("STRING", "NONE", "JSON", "ENUM", "BSON")


def _is_coded(chunk: Any) -> bool:
    return any("DICTIONARY" in str(encoding) for encoding in chunk.encodings)


def _longest(arrow: Any, column: Any) -> int:
    """Return the bytes of the longest text in the lists of a column."""
    longest = [arrow.compute.max(arrow.compute.binary_length(one.dictionary)).as_py() for one in _coded(arrow, column)]
    return max([0, *(size for size in longest if size is not None)])


def value_bytes(arrow: Any, column: Any) -> int:
    """Return the bytes of a column's values, each text as often as it stands."""
    parts = list(_coded(arrow, column))
    sizes = [arrow.compute.binary_length(part.dictionary).cast(arrow.int64()).take(part.indices) for part in parts]
    return int(column.nbytes) + sum(int(arrow.compute.sum(size).as_py() or 0) for size in sizes)


def _coded(arrow: Any, column: Any) -> list[Any]:
    """Return the parts of a column whose texts are numbers into a list, within lists, maps and structs too."""
    kind, types = column.type, arrow.types
    if types.is_dictionary(kind):
        texts = types.is_string(kind.value_type) or types.is_binary(kind.value_type)
        texts |= types.is_large_string(kind.value_type) or types.is_large_binary(kind.value_type)
        return [column] if texts else []
    if types.is_map(kind):
        return [*_coded(arrow, column.keys), *_coded(arrow, column.items)]
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return _coded(arrow, column.flatten())
    if types.is_struct(kind):
        return [part for field in column.flatten() for part in _coded(arrow, field)]
    return []
