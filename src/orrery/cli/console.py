"""How an error looks: one line ``error:``, one line ``hint:``, and an exit code that scripts can rely on."""

import errno
import os
import sys
import traceback
import unicodedata
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from orrery.errors import MachineError, OrreryError, RunError, UsageError

# The disk is full, over quota, or refuses a file of this size; read-only, or closed to this user.
_ROOM_ERRNOS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_RIGHTS_ERRNOS = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
_PATH_ERRNOS = frozenset(
    {errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG, errno.ELOOP, errno.EEXIST, errno.ENOTEMPTY}
    | {errno.EINVAL, errno.ENXIO, errno.ESPIPE, errno.EXDEV, errno.EBADF}
)
_INTERRUPTED = 130
_KEPT = "\n\t"
_LONGEST = 2000


@dataclass(frozen=True)
class ToldFailure:
    """What a failure is told as: two lines, either of which may be empty, and the exit code."""

    message: str
    hint: str
    code: int


def report(error: BaseException, debug: bool = False, words: Sequence[str] = ()) -> int:
    """Print ``error`` on stderr, below its traceback when ``debug``, and return the exit code.

    ``words`` are those of the command line.
    """
    if debug:
        traceback.print_exception(error)
    verdict = judge(error, words)
    with suppress(OSError):
        close_output()
    for label, text in (("error", verdict.message), ("hint", verdict.hint)):
        if text:
            print(f"{label}: {_one_line(text)}", file=sys.stderr)
    return verdict.code


def close_output() -> None:
    """Flush stdout now, so that a reader that left or a full disk is met where it can still be reported."""
    try:
        sys.stdout.flush()
    except OSError:
        _discard_output()  # else the interpreter would try again, fail again and leave with a code of its own, 120
        raise


def judge(error: BaseException, words: Sequence[str] = ()) -> ToldFailure:
    """Say what is wrong, what to do, and with which code to leave, for any exception."""
    if isinstance(error, OrreryError):
        return _unknown(error, words) or ToldFailure(error.message, _spelled(error.hint, words), error.exit_code)
    if isinstance(error, KeyboardInterrupt):
        return ToldFailure("interrupted", "", _INTERRUPTED)
    if isinstance(error, BrokenPipeError):
        return ToldFailure("", "", RunError.exit_code)
    if isinstance(error, OSError) and error.errno is not None:
        return _path(error) if error.errno in _PATH_ERRNOS else _machine(error)
    if _is_memory(error):
        hint = "use a smaller batch, context or model, or free memory on this machine"
        return ToldFailure(f"out of memory: {error}", hint, RunError.exit_code)
    return _usage(error, words) or _defect(error)


def _path(error: OSError) -> ToldFailure:
    """Tell of a path that cannot be what it should be, wherever it came from."""
    return ToldFailure(
        f"{error.strerror}{_where(error)}", "check the path, and each folder on its way", UsageError.exit_code
    )


def _machine(error: OSError) -> ToldFailure:
    hint = "check the machine: its disks, limits and network"
    if error.errno in _ROOM_ERRNOS:
        hint = "make room or choose another folder; nothing already saved was touched"
    if error.errno in _RIGHTS_ERRNOS:
        hint = "choose a file or folder that this user may read or write, or change its rights"
    return ToldFailure(f"{error.strerror}{_where(error)}", hint, MachineError.exit_code)


def _where(error: OSError) -> str:
    return f": {os.fsdecode(error.filename)}" if isinstance(error.filename, str | bytes) else ""


def _is_memory(error: BaseException) -> bool:
    """Tell memory from other failures by name: torch must not be imported to report an error."""
    text = str(error)
    return (
        isinstance(error, MemoryError)
        or type(error).__name__ == "OutOfMemoryError"
        or (isinstance(error, RuntimeError) and "DefaultCPUAllocator" in text)
    )


def _usage(error: BaseException, words: Sequence[str]) -> ToldFailure | None:
    from cyclopts import CycloptsError

    see = _help_hint(error, words)
    for link in (error, error.__cause__):
        if _is_pydantic(link):
            return ToldFailure(_invalid(link), see, UsageError.exit_code)
    if isinstance(error, CycloptsError):
        from orrery.cli.suggestions import of_parser

        return ToldFailure(*(of_parser(error, words, see) or (str(error), see)), UsageError.exit_code)
    return None


def _spelled(hint: str, words: Sequence[str]) -> str:
    """Return a hint with its settings as the verb spells them."""
    if "`" not in hint or not words:
        return hint
    from orrery.cli.spelling import as_flags

    return as_flags(hint, words)


def _unknown(error: OrreryError, words: Sequence[str]) -> ToldFailure | None:
    """Tell of a flag that a verb's further settings do not know, with those of the verb among what may be meant."""
    from orrery.schema.unknown import UnknownSettingError

    if not isinstance(error, UnknownSettingError) or not words:
        return None
    from orrery.cli.suggestions import of_settings

    return ToldFailure(*of_settings(error, words, f"see 'orrery {words[0]} --help'"), error.exit_code)


def _is_pydantic(error: BaseException | None) -> bool:
    module = sys.modules.get("pydantic")
    return module is not None and isinstance(error, module.ValidationError)


def _invalid(error: Any) -> str:
    """Name each invalid setting by its dotted path, at most three of them."""
    faults = [(".".join(map(str, fault["loc"])) or error.title, fault["msg"]) for fault in error.errors()]
    shown = "; ".join(f"{place}: {text}" for place, text in faults[:3])
    more = len(faults) - 3
    return f"{shown}; and {more} more" if more > 0 else shown


def _help_hint(error: BaseException, words: Sequence[str]) -> str:
    # A verb that parses its own settings has no chain.
    chain = getattr(error, "command_chain", None) or [word for word in words[:1] if word == "evaluate"]
    return f"see '{' '.join(('orrery', *chain))} --help'"


def _defect(error: BaseException) -> ToldFailure:
    hint = "this is a defect of Orrery: run again with --debug and report the traceback with 'orrery info'"
    return ToldFailure(f"unexpected {type(error).__name__}: {error}", hint, RunError.exit_code)


def _discard_output() -> None:
    """Send what is still buffered nowhere: the interpreter flushes stdout once more on its way out."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def printable(text: str) -> str:
    r"""Return text with control characters other than newline and tab escaped: ``\x1b`` for the escape byte."""
    return "".join(f"\\x{ord(c):02x}" if unicodedata.category(c) == "Cc" and c not in _KEPT else c for c in text)


def _one_line(text: str) -> str:
    """Return a message on one line, whatever names the file in question gave its parts."""
    line = printable(" ".join(text.split()))
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]} ..."
