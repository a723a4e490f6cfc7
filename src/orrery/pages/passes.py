"""The passes that a server has open: few, bounded in memory, and each the same for the same text and edits."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, final

from orrery.errors import UsageError
from orrery.inspection.checks import Check
from orrery.language_model.model import LanguageModel
from orrery.pages.models import CheckpointModels
from orrery.pages.page import Page
from orrery.views._inside import Inside
from orrery.views._payload import Payload
from orrery.views._view import Subject, shown

MOST = 8
"""Passes that are held; the one that was asked last is let go of first."""
MOST_BYTES = 1 << 30


@final
class Passes:
    """The passes of one model, by their ids.

    One is computed at a time, so that the memory of looking inside is bounded whoever asks.

    Args:
        lm: the model.
        laws: a file of ``orrery verify --json``, which is shown beside.
    """

    def __init__(self, lm: LanguageModel, laws: Path | None = None) -> None:
        self.lm, self.laws = lm, laws
        self._held: OrderedDict[str, Inside] = OrderedDict()
        self._models = CheckpointModels(lm, self._forget)
        self._lock = threading.Lock()

    def open(
        self,
        given: Mapping[str, Any],
        edits: Sequence[Mapping[str, Any]] = (),
        check: Callable[[Inside], Check] | None = None,
        checkpoint: int | None = None,
    ) -> Inside:
        """Return a pass over what is given, and hold it.

        Args:
            given: as ``Inside`` takes it.
            edits: what is changed in the pass; a ``source`` among them is the id of another pass that is open.
            check: one more check of this pass, shown with its tokens.
            checkpoint: the step of the run at which the model is taken; by default the model that is served.

        Raises:
            UsageError: the text is empty or too long, an edit reaches nothing, or there is no such checkpoint.
        """
        with self._lock:
            named = {str(edit["source"]) for edit in edits if isinstance(edit, Mapping) and edit.get("source")}
            lm = self._models.at(checkpoint)
            found = Inside(lm, given, edits, {id: self._find(id) for id in named})
            if check is not None:
                found.checks = [*found.checks, check(found)]
            self._held[found.id] = found
            self._held.move_to_end(found.id)
            while len(self._held) > MOST or (len(self._held) > 1 and self._bytes() > MOST_BYTES):
                self._held.popitem(last=False)
            return found

    def show(self, id: str, view: str, asked: Mapping[str, Any]) -> Payload:
        """Return what a view shows of a pass.

        Raises:
            UsageError: the pass is not held any more, or the view has nothing to show.
        """
        with self._lock:
            return shown(view, self._subject(id), asked)

    def save(self, id: str) -> str:
        """Return a pass as one HTML page; errors as in ``show``."""
        with self._lock:
            return Page(self._subject(id)).html()

    def show_model(self, view: str, asked: Mapping[str, Any]) -> Payload:
        """Return what a view shows of the model alone; errors as in ``show``."""
        with self._lock:
            return shown(view, Subject(self.lm, laws=self.laws), asked)

    def _subject(self, id: str) -> Subject:
        inside = self._find(id)
        return Subject(inside.lm, inside, self.laws)

    def _forget(self, lm: LanguageModel) -> None:
        """Close the passes of a model that is let go of: they would keep it."""
        for id in [id for id, inside in self._held.items() if inside.lm is lm]:
            del self._held[id]

    def _find(self, id: str) -> Inside:
        if id not in self._held:
            raise UsageError(f"the pass {id[:40]!r} is not open", "look inside the text again")
        self._held.move_to_end(id)
        return self._held[id]

    def _bytes(self) -> int:
        return sum(value.nbytes for inside in self._held.values() for value in inside.first.values.values())
