"""Who is told of a run as it goes, one file each; `register` makes known what a program defines. No torch here."""

from typing import TYPE_CHECKING

from orrery.schema.lazy import lazily

if TYPE_CHECKING:
    from orrery.reports.observers._events import (
        CheckpointSaved,
        Evaluated,
        Event,
        RunBegan,
        RunEnded,
        Said,
        StepLearned,
    )
    from orrery.reports.observers._observer import OBSERVED, OBSERVERS, Observer, place, register

_EVENTS = ("CheckpointSaved", "Evaluated", "Event", "RunBegan", "RunEnded", "Said", "StepLearned")
__all__ = [
    "OBSERVED",
    "OBSERVERS",
    "CheckpointSaved",
    "Evaluated",
    "Event",
    "Observer",
    "RunBegan",
    "RunEnded",
    "Said",
    "StepLearned",
    "place",
    "register",
]

__getattr__ = lazily(
    __name__, {"_events": _EVENTS, "_observer": ("OBSERVED", "OBSERVERS", "Observer", "place", "register")}
)
