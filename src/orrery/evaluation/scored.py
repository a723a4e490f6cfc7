"""One score, and the signature that says how it was computed: without it two numbers cannot be compared."""

from dataclasses import dataclass

import orrery


@dataclass(frozen=True)
class Scored:
    """One score and its signature; scores of texts and answers are in per cent, as usual, the others as defined."""

    name: str
    score: float
    signature: str
    digits: int = 2

    def __str__(self) -> str:
        return f"{self.name} {self.score:.{self.digits}f} ({self.signature})"


def signature(**facts: object) -> str:
    """Return ``name:value|name:value|...|orrery:VERSION``; True and False are yes and no, as in sacrebleu's."""
    told = {name: _told(value) for name, value in facts.items()}
    return "|".join(f"{name}:{value}" for name, value in {**told, "orrery": orrery.__version__}.items())


def _told(value: object) -> str:
    return ("no", "yes")[value] if isinstance(value, bool) else str(value)
