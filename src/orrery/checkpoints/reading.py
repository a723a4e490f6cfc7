"""Small files that a user wrote or may have spoilt: read whole, but never more than they may hold."""

from pathlib import Path


def read_text(path: Path, limit: int) -> str:
    """Return the text of a file of at most ``limit`` bytes; pipes are read too.

    Raises:
        OSError: it cannot be read.
        ValueError: it is longer, it is not UTF-8, or the path itself holds a NUL.
    """
    with path.open("rb") as file:
        content = file.read(limit + 1)
    if len(content) > limit:
        raise ValueError(f"it has more than {limit:,} bytes")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"it is not UTF-8 at byte {error.start:,}") from error
