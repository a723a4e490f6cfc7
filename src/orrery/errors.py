"""Every error that a user can cause: what is wrong, what to do about it, and the program's exit code."""

from typing import ClassVar


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
