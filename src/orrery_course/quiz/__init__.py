"""The quiz: what the lectures ask, with answers that are computed, and wrong ones that say where they come from."""

from typing import TYPE_CHECKING

from orrery.schema.lazy import lazily

if TYPE_CHECKING:
    from orrery_course.quiz._asking import Judgement, judge, lettered, shown
    from orrery_course.quiz._question import (
        DECKS,
        Entry,
        Question,
        Wrong,
        chosen,
        entries,
        holds,
        number,
        numbers,
        question,
        words,
    )

_QUESTION = [
    "DECKS", "Entry", "Question", "Wrong", "chosen", "entries", "holds", "number", "numbers", "question", "words",
]  # fmt: skip
_ASKING = ["Judgement", "judge", "lettered", "shown"]
__all__ = [
    "DECKS",
    "Entry",
    "Judgement",
    "Question",
    "Wrong",
    "chosen",
    "entries",
    "holds",
    "judge",
    "lettered",
    "number",
    "numbers",
    "question",
    "shown",
    "words",
]


__getattr__ = lazily(__name__, {"_asking": _ASKING, "_question": _QUESTION})
