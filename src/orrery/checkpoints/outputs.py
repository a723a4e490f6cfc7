"""The one rule for every file and folder that a user names as an output of a verb.

1. What is there stays unless ``--overwrite`` is given. Of a folder only what such a verb writes is replaced: one that
   holds anything else is refused.
2. An input, and what lies in a folder that is an input, is never replaced, with ``--overwrite`` neither.
3. The name is given last: what is written lies aside, in the same folder, until it is complete and on the disk. A
   command that fails or is killed leaves what was there.

A verb makes an `OutputFile` or `OutputFolder` before its work, so that what must be refused is refused at once.
"""

import os
import shutil
import socket
import stat
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import TextIO

from orrery.checkpoints.disk import exchange, fsync_folder, fsync_tree, machine_errors, refuse_remote, remove
from orrery.errors import UsageError


class Output(ABC):
    """A path that a verb will write to, refused at once where the rule refuses it.

    Args:
        path: as the user gave it; a link to something is followed.
        inputs: what the verb reads: paths, or names that are no paths and are passed over; None is passed over too.
        overwrite: whether what is there may be replaced.
    """

    def __init__(self, path: str | Path, *, inputs: Iterable[str | Path | None] = (), overwrite: bool = False) -> None:
        self.given, self.overwrite = Path(path), overwrite
        refuse_remote(self.given)
        with machine_errors(self.given):
            _status(self.given)  # a name that no file can have
        self.path = Path(os.path.realpath(path))
        self.inputs = {str(name): Path(os.path.realpath(name)) for name in inputs if name and is_path(name)}
        with machine_errors(self.given):
            _put_back(self.path)
            self.check()
            if not self.is_stream:
                tempfile.TemporaryFile(dir=_existing(self.path.parent)).close()  # can the folder be written?

    @property
    def is_stream(self) -> bool:
        """Whether this is a pipe or a device, which only passes on what is written to it."""
        status = _status(self.given)
        return status is not None and (stat.S_ISCHR(status.st_mode) or stat.S_ISFIFO(status.st_mode))

    def check(self) -> None:
        """Raise ``UsageError`` where the rule refuses this output now."""
        status = _status(self.given)
        place = _existing(self.path.parent)
        if not place.is_dir():
            raise UsageError(f"{self.given} cannot be written: {place} is a file", "choose another place")
        for name, path in self.inputs.items():
            if path == self.path or (status is not None and os.path.samefile(path, self.path)):
                raise UsageError(f"{self.given} is read by this command ({name})", "choose another name for the output")
        self.refuse(status)

    def _refuse_inside_input(self) -> None:
        """Refuse to replace what belongs to an input folder."""
        for name, path in self.inputs.items():
            if path in self.path.parents:
                message = f"{self.given} is part of {name}, which this command reads"
                raise UsageError(message, "an input is never written over: choose another name for the output")

    @abstractmethod
    def refuse(self, status: os.stat_result | None) -> None:
        """Raise ``UsageError`` where what is there, if anything, may not be replaced."""

    @abstractmethod
    def put(self, fresh: Path) -> None:
        """Give what lies complete at ``fresh`` its name."""

    @contextmanager
    def aside(self, needed: int = 0) -> Iterator[Path]:
        """Give a path to write to; when the block ends without an error, what lies there gets the output's name.

        Raises:
            UsageError: something has come there since.
            MachineError: the disk refuses; ``needed`` is then named as the bytes that were to be written.
        """
        if self.is_stream:
            raise UsageError(f"{self.given} is a pipe or a device", "name a file that can be read back")
        fresh = self.path.with_name(f"{_mark(self.path)}-{os.getpid()}")
        missing = [folder for folder in self.path.parents if not folder.exists()]
        try:
            with machine_errors(self.given, needed):
                self.path.parent.mkdir(parents=True, exist_ok=True)
                _clear_leftovers(self.path)
                yield fresh
                fsync_tree(fresh)
                self.check()
                self.put(fresh)
                fsync_folder(self.path.parent)
        finally:
            remove(fresh)
            for folder in missing:
                with suppress(OSError):  # it is not empty, as after a success
                    folder.rmdir()


SHOWN = (".svg", ".html", ".htm", ".png", ".jpg", ".jpeg", ".gif", ".webp", ".pdf")
"""Endings by which programs choose how a file is shown."""


class OutputFile(Output):
    """A file to be written; a pipe or a device, such as ``/dev/stdout``, is written to as it is."""

    @classmethod
    def shown(
        cls, kind: str, path: str | Path, *, inputs: Iterable[str | Path | None] = (), overwrite: bool = False
    ) -> "OutputFile":
        """Return the file of a picture or a page; ``kind`` is what it is, such as ``svg``.

        Raises:
            UsageError: its name says another kind, as which no program could open it.
        """
        ending = Path(path).suffix.lower()
        if ending in SHOWN and not ending.startswith(f".{kind[:3]}"):  # .htm is a page too
            raise UsageError(f"{path}: what is written is {kind.upper()}", f"name it {Path(path).stem}.{kind}")
        return cls(path, inputs=inputs, overwrite=overwrite)

    def refuse(self, status: os.stat_result | None) -> None:
        """Refuse a folder, and a file that may not be replaced."""
        if status is None or self.is_stream:
            return
        if stat.S_ISDIR(status.st_mode):
            raise UsageError(f"{self.given} is a folder", "name a file")
        self._refuse_inside_input()
        if not self.overwrite:
            raise UsageError(f"{self.given} exists already", "add --overwrite to replace it, or choose another name")

    def put(self, fresh: Path) -> None:
        """Replace the file, keeping its rights."""
        if self.path.exists():
            shutil.copymode(self.path, fresh)
        os.replace(fresh, self.path)

    @contextmanager
    def lines(self) -> Iterator[TextIO]:
        """Give a stream of UTF-8 text."""
        if self.is_stream:
            with machine_errors(self.given), open(self.given, "w", encoding="utf-8", newline="\n") as stream:
                yield stream
        else:
            with self.aside() as fresh, open(fresh, "w", encoding="utf-8", newline="\n") as stream:
                yield stream

    def write(self, text: str) -> None:
        """Write the whole file."""
        with self.lines() as stream:
            stream.write(text)


class OutputFolder(Output):
    """A folder to be written whole: a new or an empty one, or one with nothing but ``ours`` that is replaced."""

    def __init__(
        self,
        path: str | Path,
        ours: Collection[str] = (),
        *,
        inputs: Iterable[str | Path | None] = (),
        overwrite: bool = False,
    ) -> None:
        self.ours = ours
        super().__init__(path, inputs=inputs, overwrite=overwrite)

    def refuse(self, status: os.stat_result | None) -> None:
        """Refuse a file, and a folder whose content may not be replaced."""
        if status is None:
            return
        if not stat.S_ISDIR(status.st_mode):
            raise UsageError(f"{self.given} is a file", "choose another name for the folder")
        entries = sorted(entry.name for entry in self.path.iterdir())
        if not entries:
            return
        self._refuse_inside_input()
        for name, path in self.inputs.items():
            if self.path in path.parents:
                raise UsageError(f"{name}, which this command reads, lies in {self.given}", "choose another folder")
        if others := [name for name in entries if name not in self.ours]:
            message = f"{self.given} is not empty: it has {', '.join(others[:3])}, which this command does not write"
            raise UsageError(message, "choose another folder, a new or an empty one")
        if not self.overwrite:
            message = f"{self.given} is not empty: it has {', '.join(entries[:3])}"
            raise UsageError(message, "add --overwrite to replace it, or choose another folder")

    def put(self, fresh: Path) -> None:
        """Take the place of the old folder, which is then at ``fresh``."""
        if self.path.exists() and any(self.path.iterdir()):
            exchange(fresh, self.path, _old(self.path))
        else:
            os.rename(fresh, self.path)


def refuse_same(one: Output, other: Output) -> None:
    """Raise ``UsageError`` where two outputs of one command are one file."""
    if one.path == other.path:
        raise UsageError(f"{one.given} and {other.given} are the same file", "give them two names")


def is_path(name: str | Path) -> bool:
    """Say whether something has this name: one with a NUL, or too long a one, is no path at all."""
    return os.path.exists(name)


def _status(path: Path) -> os.stat_result | None:
    """Return what is at a path, None for nothing. Raises ``UsageError`` for a link to nothing."""
    try:
        return path.stat()
    except FileNotFoundError:
        if path.is_symlink():
            raise UsageError(f"{path} is a link to nothing", "remove it, or choose another name") from None
        return None
    except ValueError as error:
        raise UsageError(f"{str(path)!r} is no path: {error}", "choose another name") from None


def _existing(path: Path) -> Path:
    """Return the nearest of a path and its parents that is there."""
    return next(place for place in (path, *path.parents) if place.exists())


def _mark(path: Path) -> str:
    """Return how the names begin of what this machine leaves aside for a path; short, whatever the path's own name."""
    host = socket.gethostname()
    return f".orrery-{sha256(os.fsencode(path.name)).hexdigest()[:8]}-{sha256(host.encode()).hexdigest()[:4]}"


def _old(path: Path) -> Path:
    return path.with_name(f"{_mark(path)}.old")


def _clear_leftovers(path: Path) -> None:
    """Remove what processes of this machine that were killed left aside for a path, and what a replaced one was."""
    for left in path.parent.glob(f"{_mark(path)}-*"):
        process = left.name.rpartition("-")[2]
        if process.isdecimal() and (int(process) == os.getpid() or not _is_alive(int(process))):
            remove(left)
    if path.exists():
        remove(_old(path))


def _put_back(path: Path) -> None:
    """Give a folder its name again where a process was killed between moving it away and putting the new one there."""
    if not path.exists() and _old(path).exists():
        os.rename(_old(path), path)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
