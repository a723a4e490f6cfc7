"""The course as a book: what each slide of the lectures asks for or shows, and the code or the command that runs it."""

from typing import TYPE_CHECKING

from orrery.schema.lazy import lazily

if TYPE_CHECKING:
    from orrery_course.course._item import Deck, Item, decks, every_item, find, searchable, searched
    from orrery_course.course._reading import DAYS, EVENING, SUBJECTS, Subject, levels

_ITEM = ["Deck", "Item", "decks", "every_item", "find", "searchable", "searched"]
_READING = ["DAYS", "EVENING", "SUBJECTS", "Subject", "levels"]
__all__ = [
    "DAYS", "EVENING", "SUBJECTS", "Deck", "Item", "Subject", "decks", "every_item", "find", "levels", "searchable",
    "searched",
]  # fmt: skip


__getattr__ = lazily(__name__, {"_item": _ITEM, "_reading": _READING})
