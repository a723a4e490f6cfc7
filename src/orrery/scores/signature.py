"""Signatures: how a score was computed, in one line; without it two numbers cannot be compared."""

import orrery


def signature(**facts: object) -> str:
    """Return ``name:value|name:value|...|orrery:VERSION``; True and False are yes and no, as in sacrebleu's."""
    texts = {name: _told(value) for name, value in facts.items()}
    return "|".join(f"{name}:{value}" for name, value in {**texts, "orrery": orrery.__version__}.items())


def _told(value: object) -> str:
    return ("no", "yes")[value] if isinstance(value, bool) else str(value)
