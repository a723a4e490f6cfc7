"""Every error that a user can cause: what is wrong, what to do about it, and the program's exit code."""

import difflib
from collections.abc import Iterable
from typing import ClassVar


def there_are(name: object, known: Iterable[str]) -> str:
    """Return the hint for a name that is none: the one that is spelled nearly so, and all that there are."""
    names = [str(each) for each in known]
    return f"{did_you_mean(name, names)}there are: {', '.join(names)}"


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """Return the beginning of a hint: the name that is spelled nearly so, or nothing."""
    close = difflib.get_close_matches(str(name), [str(each) for each in known], n=1)
    return f"did you mean {close[0]}? " if close else ""


class OrreryError(Exception):
    """An expected error, printed as one line ``error:`` and one line ``hint:``, without a traceback."""

    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, hint: str) -> None:
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} (hint: {self.hint})"


class RunError(OrreryError):
    """The run itself failed: a check, a non-finite loss, memory."""

    exit_code = 1


class UsageError(OrreryError):
    """A command line, a recipe, an argument or a configuration that cannot be carried out."""

    exit_code = 2


class DataError(OrreryError):
    """Input data that is missing, empty, too short or malformed."""

    exit_code = 3


class ModelFileError(OrreryError):
    """A model, tokenizer or checkpoint file that is missing, damaged or of another kind."""

    exit_code = 4


class MachineError(OrreryError):
    """The machine refuses: disk, rights, locks, a missing extra or tool."""

    exit_code = 5
