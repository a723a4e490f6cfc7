"""The manifest of a checkpoint: size and sha256 of each file, so that a changed byte never loads silently."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

import orrery
from orrery.errors import ModelFileError

NAME = "manifest.json"
FORMAT = 1


class NewerFormatError(ModelFileError):
    """A checkpoint of a later version of the format, which no older checkpoint may silently stand in for."""


@dataclass(frozen=True)
class FileRecord:
    """What the manifest says of one file: its size in bytes and its sha256 in hexadecimal."""

    size: int
    sha256: str


def manifest_text(files: dict[str, FileRecord]) -> str:
    """Return the manifest of ``files`` as JSON text."""
    records = {name: {"size": record.size, "sha256": record.sha256} for name, record in sorted(files.items())}
    return json.dumps({"format": FORMAT, "written_by": orrery.__version__, "files": records}, indent=1) + "\n"


def read_manifest(folder: Path) -> dict[str, FileRecord]:
    """Read the manifest of ``folder``; raise ``ModelFileError`` if missing, damaged or newer than we are."""
    path = folder / NAME
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        version, writer = int(content["format"]), str(content["written_by"])
    except FileNotFoundError as error:
        raise ModelFileError(f"{path} is missing", "this folder is not a finished checkpoint") from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ModelFileError(f"{path} is damaged", "use another checkpoint of the run") from error
    if version > FORMAT:
        message = f"{folder} was written by Orrery {writer} (format {version}); this is {orrery.__version__}"
        raise NewerFormatError(f"{message} (format {FORMAT})", "install the newer version to read it")
    try:
        files = content["files"].items()
        records = {name: FileRecord(int(value["size"]), str(value["sha256"])) for name, value in files}
    except (AttributeError, ValueError, KeyError, TypeError) as error:
        raise ModelFileError(f"{path} is damaged", "use another checkpoint of the run") from error
    strange = [name for name in records if Path(name).name != name or name == NAME]
    if strange:
        raise ModelFileError(f"{path} names {strange[0]!r}, no plain file", "use another checkpoint of the run")
    return records


def check_folder(folder: Path, needed: tuple[str, ...] = ()) -> None:
    """Compare each file of ``folder`` with the manifest; raise ``ModelFileError`` at the first difference.

    ``needed`` names files that the manifest must list.
    """
    records = read_manifest(folder)
    for name in needed:
        if name not in records:
            raise ModelFileError(f"{folder / NAME} does not list {name}", "use another checkpoint of the run")
    for name, record in records.items():
        path = folder / name
        size = path.stat().st_size if path.exists() else None
        if size != record.size:
            fault = "is missing" if size is None else f"has {size:,} bytes"
            message = f"{path} {fault}, its manifest says {record.size:,} bytes"
            raise ModelFileError(message, "the file is cut or changed; use another checkpoint of the run")
        if file_sha256(path) != record.sha256:
            message = f"{path} ({size:,} bytes as expected) differs from the sha256 in its manifest"
            raise ModelFileError(message, "a byte has changed; use another checkpoint of the run")


def file_sha256(path: Path) -> str:
    """Return the sha256 of a file in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
