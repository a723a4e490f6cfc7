"""The passes that a server has open: few, bounded in memory, and each the same for the same text and edits."""

import base64
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, final

from orrery.data.pictures.addresses import BEGINNING, is_address
from orrery.errors import DataError, UsageError
from orrery.inspection.checks import Check
from orrery.inspection.interventions.interventions import Interventions
from orrery.language_model.model import LanguageModel
from orrery.page.models import CheckpointModels
from orrery.page.page import DIFFERENCE, Page
from orrery.page.views._inside import Inside
from orrery.page.views._payload import Payload, to_json
from orrery.page.views._view import ViewSubject, shown

MOST = 8
"""Passes that are held; the one that was asked last is let go of first."""
MOST_BYTES = 1 << 30


@final
class Passes:
    """The passes of one model, by their ids.

    For one thread: its caller computes one pass at a time, so that the memory of looking inside is bounded.

    Args:
        lm: the model.
        laws: a file of ``orrery verify --json``, which is shown beside.
    """

    def __init__(self, lm: LanguageModel, laws: Path | None = None) -> None:
        self.lm, self.laws = lm, laws
        self._held: OrderedDict[str, Inside] = OrderedDict()
        self._models = CheckpointModels(lm, self._forget)
        self._asked: dict[str, str] = {}
        self._images: dict[str, str] = {}

    def keep_image(self, path: Path) -> str:
        """Let clients look into an image of this machine by the name of its file, which is returned.

        Raises:
            DataError: it cannot be read.
        """
        try:
            self._images[path.name] = BEGINNING + base64.b64encode(path.read_bytes()).decode()
        except OSError as error:
            raise DataError(f"{path} cannot be read: {error.strerror}", "check the path") from error
        return path.name

    def open(
        self,
        given: Mapping[str, Any],
        edits: Sequence[Mapping[str, Any]] = (),
        check: Callable[[Inside], Check] | None = None,
        checkpoint: int | None = None,
    ) -> Inside:
        """Return a pass over what is given, and hold it; one that is held is not computed again.

        Args:
            given: as ``Inside`` takes it; an image is its content, or the name of one that is kept: no path of this
                machine.
            edits: what is changed in the pass, as JSON; ``from`` names another pass that is open, by its id.
            check: one more check of this pass, shown with its tokens.
            checkpoint: the step of the run at which the model is taken; by default the model that is served.

        Raises:
            UsageError: the text is empty or too long, an edit reaches nothing, or there is no such checkpoint.
            DataError: an image cannot be read.
        """
        given = self._with_content(given)
        named = {one.source for one in Interventions.of(edits).edits if one.source is not None}
        key = to_json([given, edits, checkpoint, self._models.version(checkpoint)])
        if check is None and self._asked.get(key) in self._held:
            return self._find(self._asked[key])
        lm = self._models.at(checkpoint)  # before the passes are found: one that is let go of takes its own along
        held = Inside(lm, given, edits, {id: self._find(id) for id in named})
        self._asked[key] = held.id
        if check is not None:
            held.checks = [*held.checks, check(held)]
        self._held[held.id] = held
        self._held.move_to_end(held.id)
        while len(self._held) > MOST or (len(self._held) > 1 and self._bytes() > MOST_BYTES):
            self._held.popitem(last=False)
        self._asked = {key: id for key, id in self._asked.items() if id in self._held}
        return held

    def show(self, id: str, view: str, view_settings: Mapping[str, Any]) -> Payload:
        """Return what a view shows of a pass; with ``difference``, the id of another one, less what it shows of that.

        Raises:
            UsageError: a pass is not held any more, or the view has nothing to show.
        """
        settings = dict(view_settings)
        other = settings.pop(DIFFERENCE, None)
        clean = None if other is None else self._subject(other)
        return shown(view, self._subject(id), settings, clean)

    def save(self, id: str) -> str:
        """Return a pass as one HTML page; errors as in ``show``."""
        return Page(self._subject(id)).html()

    def show_model(self, view: str, view_settings: Mapping[str, Any]) -> Payload:
        """Return what a view shows of the model alone; errors as in ``show``."""
        return shown(view, ViewSubject(self.lm, laws=self.laws), view_settings)

    def _subject(self, id: str) -> ViewSubject:
        inside = self._find(id)
        return ViewSubject(inside.lm, inside, self.laws)

    def _forget(self, lm: LanguageModel) -> None:
        """Close the passes of a model that is let go of: they would keep it."""
        for id in [id for id, inside in self._held.items() if inside.lm is lm]:
            del self._held[id]

    def _with_content(self, given: Mapping[str, Any]) -> Mapping[str, Any]:
        image = given.get("image")
        if image is None or is_address(image):
            return given
        if image not in self._images:
            known = ", ".join(self._images) or "none that this program was started with"
            raise UsageError(
                f"there is no image {image[:60]!r}", f"send its content ({BEGINNING}...); there is {known}"
            )
        return {**given, "image": self._images[image]}

    def _find(self, id: str) -> Inside:
        if id not in self._held:
            raise UsageError(f"the pass {id[:40]!r} is not open", "look inside the text again")
        self._held.move_to_end(id)
        return self._held[id]

    def _bytes(self) -> int:
        return sum(value.nbytes for inside in self._held.values() for value in inside.first.values.values())
