"""The named data sets: what each is, whose, under which licence, and how to get it.

The registry itself is ``sets.json`` beside this file. Nothing here touches the network but `fetch`, and
nothing calls `fetch` but the user's own command.
"""

import gzip
import hashlib
import json
import lzma
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from orrery.errors import DataError, MachineError, UsageError

TIMEOUT = 60.0
"""Seconds without a byte before a download is given up."""

Download = Callable[[str], bytes]


@dataclass(frozen=True)
class SetFile:
    """One file of a set: its name in the folder, its sha256, and its address where it is fetched as it is.

    ``content`` is the sha256 of the uncompressed content, given where the origin is compressed differently.
    """

    name: str
    bytes: int
    sha256: str
    url: str | None
    content: str | None


@dataclass(frozen=True)
class DataSet:
    """A named set; ``corpora`` maps each part that can be read as text ("" the whole) to its file.

    ``pairs`` maps each part that is parallel text to its two files, ``tables`` each part that is rows of several
    columns to its file; ``column`` is the column of the text, ``label`` that of what it is, ``columns`` those of source
    and target where rows are pairs.
    """

    name: str
    what: str
    licence: str
    repository: str
    commit: str
    conversion: str
    column: str | None
    corpora: Mapping[str, str]
    pairs: Mapping[str, tuple[str, str]]
    files: tuple[SetFile, ...]
    label: str | None = None
    tables: Mapping[str, str] = field(default_factory=dict)
    columns: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_corpus(self) -> bool:
        """Whether `read_corpus` takes the name."""
        return bool(self.corpora)

    @property
    def origin(self) -> str:
        """The public repository at its commit, or where else it comes from."""
        return f"{self.repository} @ {self.commit[:12]}" if self.repository else "made for this project"

    def missing(self, folder: Path) -> list[SetFile]:
        """Return the files that are not in ``folder``/name."""
        return [file for file in self.files if not (folder / self.name / file.name).is_file()]


def _load() -> dict[str, DataSet]:
    content = json.loads(Path(__file__).with_name("sets.json").read_text(encoding="utf-8"))
    return {
        name: DataSet(
            name=name,
            pairs={part: (source, target) for part, (source, target) in entry.pop("pairs", {}).items()},
            files=tuple(_file(file) for file in entry.pop("files")),
            **entry,
        )
        for name, entry in content.items()
    }


def _file(entry: Mapping[str, object]) -> SetFile:
    origin = entry.get("origin")
    url = None
    if isinstance(origin, dict):
        url = "https://raw.githubusercontent.com/{repository}/{commit}/{path}".format(**origin)
    content = entry.get("content_sha256")
    return SetFile(
        str(entry["name"]),
        int(str(entry["bytes"])),
        str(entry["sha256"]),
        url,
        str(content) if content else None,
    )


SETS = _load()


def find(name: str) -> DataSet:
    """Return the set of this name. Raises `UsageError` that lists the names."""
    if name not in SETS:
        raise UsageError(f"no data set is named {name!r}", f"the names are: {', '.join(SETS)}")
    return SETS[name]


def corpus_files(name: str, part: str, folder: Path) -> tuple[Path, list[Path]]:
    """Return the data folder and the files of one corpus. Raises `DataError` where they are missing."""
    data_set = find(name)
    if part in data_set.tables:
        return folder, [present(folder, name, data_set.tables[part])]
    if part not in data_set.corpora:
        parts = ", ".join(f"{name}/{known}" if known else name for known in data_set.corpora)
        hint = f"it has: {parts}" if parts else "its tasks read it with their own loaders"
        what = f"{name}/{part}: not a text corpus" if part else f"{name} is not a text corpus as a whole"
        raise DataError(what if parts else f"{name} is not a text corpus", hint)
    return folder, [present(folder, name, data_set.corpora[part])]


def is_parallel(source: str) -> bool:
    """Whether this is the name of a set, or of a part of one, that is parallel text."""
    name, _, part = source.partition("/")
    return name in SETS and part in SETS[name].pairs


def pair_files(source: str, folder: Path) -> tuple[Path, Path]:
    """Return the two files of a named parallel corpus. Raises `DataError` where there are none."""
    name, _, part = source.partition("/")
    if not is_parallel(source):
        known = [
            f"{data_set.name}/{part}" if part else data_set.name
            for data_set in SETS.values()
            for part in data_set.pairs
        ]
        raise DataError(f"{source}: not a named parallel corpus", f"name two files, or one of: {', '.join(known)}")
    left, right = SETS[name].pairs[part]
    return present(folder, name, left), present(folder, name, right)


def present(folder: Path, name: str, file: str) -> Path:
    """Return the path of one file of a set. Raises `DataError` that says how to get it where it is missing."""
    path = folder / name / file
    if not path.is_file():
        raise DataError(
            f"{path}: the data set {name!r} is not there",
            f"`orrery data fetch {name}` gets it, or point ORRERY_DATA at the folder that holds {name}/",
        )
    return path


def download(url: str) -> bytes:
    """Return what a public address serves. Raises `MachineError` without a network."""
    try:
        with urlopen(url, timeout=TIMEOUT) as answer:  # the address comes from our own registry
            return bytes(answer.read())
    except (URLError, TimeoutError, OSError) as error:
        raise MachineError(f"{url}: {error}", "check the network, or fetch the file by hand") from None


def fetch(name: str, folder: Path, get: Download = download) -> list[Path]:
    """Get the missing files of a set from its public origin, check each sha256, and return the paths written.

    Raises `DataError` for a file whose checksum differs, and for one that needs a conversion which is only
    described: then nothing is written.
    """
    data_set = find(name)
    missing = data_set.missing(folder)
    described = [file.name for file in missing if file.url is None]
    if described:
        raise DataError(
            f"{name}: {', '.join(described)} cannot be fetched as is (origin: {data_set.origin})",
            f"make it from the origin: {data_set.conversion}; put it under {folder / name}",
        )
    fetched = []
    for file in missing:
        path = folder / name / file.name
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name}.{os.getpid()}")
        temporary.write_bytes(_verified(file, get(file.url or "")))
        os.replace(temporary, path)
        fetched.append(path)
    return fetched


def _verified(file: SetFile, content: bytes) -> bytes:
    """Return the bytes to store; the compression may differ from ours, the content may not."""
    plain = content
    if file.content is not None:
        plain = gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content
    real, expected = hashlib.sha256(plain).hexdigest(), file.content or file.sha256
    if real != expected:
        raise DataError(
            f"{file.url}: sha256 {real[:12]}..., expected {expected[:12]}...",
            "the origin changed or the download broke",
        )
    if file.content is None:
        return content
    return gzip.compress(plain, mtime=0) if file.name.endswith(".gz") else lzma.compress(plain)


def table() -> str:
    """Return the registry as a Markdown table, as docs/data.md shows it."""
    rows = ["| set | what | origin | licence | conversion |", "|---|---|---|---|---|"]
    for data_set in SETS.values():
        rows.append(
            f"| `{data_set.name}` | {data_set.what} | {data_set.origin} | {data_set.licence} | {data_set.conversion} |"
        )
    return "\n".join(rows) + "\n"


def checksums() -> str:
    """Return every file with its size, sha256 and public address, as docs/data.md shows it."""
    rows = ["| file | bytes | sha256 | fetched |", "|---|---:|---|---|"]
    for data_set in SETS.values():
        for file in data_set.files:
            how = f"[yes]({file.url})" if file.url else "described"
            rows.append(f"| {data_set.name}/{file.name} | {file.bytes:,} | `{file.sha256}` | {how} |")
    return "\n".join(rows) + "\n"
