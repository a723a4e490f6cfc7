"""Which process of a run this is, as ``torchrun`` says it in the environment; importing it imports no torch."""

import os

from orrery.errors import UsageError


def processes() -> int:
    """Return how many processes ``torchrun`` has started for a run, 1 without it."""
    return environment_number("WORLD_SIZE", 1)


def leads() -> bool:
    """Say whether this process is the one that writes, scores and speaks for all."""
    return processes() == 1 or environment_number("RANK", 0) == 0


def environment_number(name: str, usual: int) -> int:
    """Return a number that ``torchrun`` sets.

    Raises:
        UsageError: it is none.
    """
    text = os.environ.get(name, str(usual))
    if not text.isascii() or not text.isdecimal():
        raise UsageError(f"{name} is {text[:40]!r}, and no number", "start the processes with torchrun, or unset it")
    return int(text)
