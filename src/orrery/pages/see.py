"""``orrery.see``: what a model does with a text, as a page for a notebook or a file."""

from collections.abc import Mapping
from typing import Any

from orrery.language_model.model import LanguageModel
from orrery.pages.page import Page
from orrery.views._inside import Inside
from orrery.views._view import Subject


def see(lm: LanguageModel, text: str, target: str | None = None) -> Page:
    """Return the inside of a model over a text as a page: a notebook shows it, ``.save(path)`` writes it.

    Args:
        lm: the model.
        text: what it reads; of an encoder-decoder the source.
        target: what an encoder-decoder has written so far.

    Raises:
        UsageError: the text is empty or too long.
    """
    given = {"source": text, "target": target or ""} if lm.model.spec.reads_source else {"text": text}
    return page_of(lm, given)


def page_of(lm: LanguageModel, given: Mapping[str, Any]) -> Page:
    """Return the page of what is given, as ``Inside`` takes it; errors as in ``see``."""
    return Page(Subject(lm, Inside(lm, given)))
