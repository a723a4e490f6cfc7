"""``orrery.see``: what a model does with a text, as a page for a notebook or a file."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from orrery.errors import UsageError
from orrery.language_model.model import LanguageModel
from orrery.language_model.trace import Given, Row, source_and_target
from orrery.models.default_device import on_cpu_by_default
from orrery.page.page import Page
from orrery.page.views._inside import Inside
from orrery.page.views._laws import read_report
from orrery.page.views._view import ViewSubject


@on_cpu_by_default
def see(
    lm: LanguageModel,
    text: Given,
    target: Row | None = None,
    edits: Sequence[Sequence[Mapping[str, Any]]] = (),
    laws: Path | None = None,
) -> Page:
    """Return the inside of a model over a text as a page: a notebook shows it, ``.save(path)`` writes it.

    Args:
        lm: the model.
        text: what it reads, as ``lm.trace`` takes it: a text, ids, messages; of an encoder-decoder the source, or
            ``(source, target)``; of a model of images the path of a PNG file, or an array.
        target: what an encoder-decoder has written so far.
        edits: lists of edits as JSON holds them; the page can show the pass with each of these lists.
        laws: a file of ``orrery verify --json``, shown on the screen Trust; by default ``laws.json`` of the run.

    Raises:
        DataError: the file holds no evidence.
        UsageError: the text is empty or too long, an edit cannot be carried out, or a target is given to a
            model that reads one text.
    """
    if laws is not None:
        read_report(laws)
    return Page(ViewSubject(lm, Inside(lm, given_of(lm, text, target)), laws), edits)


def given_of(lm: LanguageModel, text: Given, target: Row | None = None) -> dict[str, Any]:
    """Return a text as ``Inside`` takes it; arguments and errors as in ``see``."""
    read, target = source_and_target(text, target)
    if lm.model.spec.vocabulary is None:
        target_given = {"target": target or ""} if lm.model.spec.reads_pair else {}
        if target is None or target_given:
            return {"image": read, **target_given}
    elif lm.model.spec.reads_source:
        return {"source": read, "target": target or ""}
    if target is not None:
        raise UsageError("this model reads and writes one text", "leave the target out; give all of it as the text")
    return {"text": read}
