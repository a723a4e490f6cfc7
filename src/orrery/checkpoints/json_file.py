"""One JSON object from a file that strangers wrote: of a bounded size, and nothing but JSON."""

import stat
from pathlib import Path
from typing import Any, NoReturn

from orrery.checkpoints import strict_json
from orrery.checkpoints.stand_ins import refuse_stand_in
from orrery.errors import ModelFileError

JSON_LIMIT = 4_000_000
"""Bytes: a label for each of 21,000 classes takes a million."""


def read_json(path: Path, limit: int = JSON_LIMIT) -> dict[str, Any]:
    """Read a JSON object.

    Raises:
        ModelFileError: the file is missing, no regular file, too long, not UTF-8, not JSON, not an object, has a key
            twice, or a number that is none.
    """
    content = _parsed(path, limit)
    if not isinstance(content, dict):
        refuse(path, "holds no JSON object")
    return content


def read_json_list(path: Path, limit: int = JSON_LIMIT) -> list[Any]:
    """Read a list in JSON; errors as of ``read_json``."""
    content = _parsed(path, limit)
    if not isinstance(content, list):
        refuse(path, "holds no list in JSON")
    return content


def _parsed(path: Path, limit: int) -> Any:
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode) or status.st_size > limit:
            refuse(path, f"is no regular file of at most {limit:,} bytes")
        return strict_json.parse(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ModelFileError(f"{path} is missing", "is the folder complete?") from error
    except OSError as error:
        raise ModelFileError(f"{path} cannot be read: {error.strerror}", "check the path and its rights") from error
    except (ValueError, RecursionError) as error:
        refuse_stand_in(path)
        raise ModelFileError(f"{path} is not JSON: {error}", "get the file again from its source") from error


def refuse(path: Path, reason: str) -> NoReturn:
    """Raise the error of a file that is not what its name says."""
    raise ModelFileError(f"{path} {reason}", "get the file again from its source")
