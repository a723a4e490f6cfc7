"""The error for a setting that there is not: it says which one may have been meant."""

from orrery.errors import UsageError
from orrery.schema.keys import Known
from orrery.schema.other_names import meant


class UnknownSettingError(UsageError):
    """A flag that a place does not know.

    Attributes:
        word: as it was written.
        known: the names that the place has.
        otherwise: what to do where nothing near is known.
    """

    def __init__(self, word: str, known: Known, otherwise: str) -> None:
        self.word, self.known, self.otherwise = word, known, otherwise
        name = meant(word, known)
        super().__init__(f"unknown flag {word}", otherwise if name is None else f"did you mean --{name}?")
