"""What a view is: a subject and what the page asks of it, to facts and tensors with their checks."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from pydantic import ValidationError

from orrery.errors import UsageError
from orrery.language_model.model import LanguageModel
from orrery.page.views._difference import by_name, less
from orrery.page.views._inside import Inside
from orrery.page.views._laws import laws_of
from orrery.page.views._payload import Payload
from orrery.page.views._run import run_of
from orrery.schema.registry import Registry
from orrery.schema.section import Section


@dataclass(frozen=True)
class ViewSubject:
    """What views show.

    Attributes:
        lm: the model.
        inside: one pass of it over a text; none where the model alone is shown.
        laws: a file of ``orrery verify --json``; by default that of the run.
    """

    lm: LanguageModel
    inside: Inside | None = None
    laws: Path | None = None

    @property
    def run(self) -> Path | None:
        """The folder of the run that the model belongs to; none where it stands alone."""
        return run_of(self.lm.folder)

    @property
    def evidence(self) -> Path | None:
        """The file of evidence that the laws are kept; none where nothing is known."""
        return laws_of(self.run, self.laws)

    @property
    def seen(self) -> Inside:
        """The pass.

        Raises:
            UsageError: there is none.
        """
        if self.inside is None:
            raise UsageError("this view shows a pass over a text, and there is none", "look inside a text first")
        return self.inside


class View(ABC):
    """A picture of the page: its numbers here, its drawing in ``web/see/views/NAME.js``.

    One file each, ``views/NAME.py``; a program defines its own and makes it known with ``register``.

    Attributes:
        kind: its name, that of its file and of the module that draws it.
        screen: the screen where it stands: ``inside``, ``decode``, ``model``, ``train`` or ``trust``.
        order: its place among the views of that screen, which follow the order of computation.
        Settings: what the page can ask of it; the parts of the query of its URL.
        compares: whether what it shows of an edited pass less what it shows of a clean one means something.
        apart: tensors that a difference gives of both passes, because subtracting them means nothing.
        named_rows: tensors whose rows have names, with the fact that lists them; a pass may lack some.
        share: its part of what a saved file has room for behind the other views; 0 where all of ``saved`` is held.
    """

    kind: ClassVar[str]
    screen: ClassVar[str] = "inside"
    order: ClassVar[int] = 0
    Settings: ClassVar[type[Section]] = Section
    compares: ClassVar[bool] = False
    apart: ClassVar[tuple[str, ...]] = ()
    named_rows: ClassVar[Mapping[str, str]] = {}
    share: ClassVar[int] = 0

    @abstractmethod
    def payload(self, subject: ViewSubject, settings: Any) -> Payload:
        """Return what is asked; ``settings`` is a ``Settings``.

        Raises:
            UsageError: there is nothing of the kind in this pass or model.
        """

    def fits(self, subject: ViewSubject) -> bool:
        """Say whether a subject has what the view shows."""
        return subject.inside is not None

    def saved(self, subject: ViewSubject) -> Iterable[Section]:
        """Return what a page that is saved as one file can ask, what is asked first before the rest.

        By default what the view gives without settings.
        """
        return [self.Settings()]

    def aligned(self, edited: ViewSubject, clean: ViewSubject, settings: Any) -> Any:
        """Return settings with which both passes show the same things, where what is shown depends on the pass."""
        return settings

    def difference(self, edited: ViewSubject, clean: ViewSubject, settings: Any) -> Payload:
        """Return what the view shows of the edited pass less what it shows of the clean one.

        Raises:
            UsageError: the passes are of other lengths.
        """
        same = self.aligned(edited, clean, settings)
        one, other = by_name([self.payload(subject, same) for subject in (edited, clean)], self.named_rows)
        return less(one, other, self.apart)


def register(view: type[View]) -> type[View]:
    """Make a view known under its ``kind``; may stand before a class as ``@register``."""
    return _REGISTRY.register(view)


def find(name: str) -> View:
    """Return a view by its name.

    Raises:
        UsageError: there is none of this name.
    """
    return _REGISTRY.find(name)()


def names() -> list[str]:
    """Return the names of all views."""
    return _REGISTRY.names()


def shown(name: str, subject: ViewSubject, given: Mapping[str, Any], clean: ViewSubject | None = None) -> Payload:
    """Return what a view of this name shows of a subject.

    Args:
        name: the view.
        subject: a model, or a pass of it.
        given: the settings of the view, as values or as the texts of a URL's query.
        clean: another pass; what the view shows of it is subtracted.

    Raises:
        UsageError: no such view, a setting that it lacks or a value that it cannot have, nothing to show, or a view
            that has no difference.
    """
    view = find(name)
    settings = _settings(view, given)
    if not view.fits(subject):
        raise UsageError(f"the view {name} has nothing to show here", "the views that fit are listed in the session")
    if clean is None:
        return view.payload(subject, settings)
    if not view.compares:
        able = ", ".join(one for one in names() if find(one).compares)
        raise UsageError(f"the view {name} has no difference", f"these have: {able}")
    return view.difference(subject, clean, settings)


def _settings(view: View, given: Mapping[str, Any]) -> Section:
    try:
        return view.Settings.model_validate(dict(given))
    except ValidationError as error:
        faults = [f"{'.'.join(map(str, fault['loc'])) or view.kind}: {fault['msg']}" for fault in error.errors()]
        known = ", ".join(view.Settings.model_fields) or "none"
        raise UsageError(f"the view {view.kind}: {'; '.join(faults[:3])}", f"its settings: {known}") from None


def fitting(subject: ViewSubject) -> list[View]:
    """Return the views that have something to show of a subject, in the order of their screens."""
    views = [find(name) for name in names()]
    return sorted((view for view in views if view.fits(subject)), key=lambda view: (view.screen, view.order, view.kind))


_REGISTRY: Registry[View] = Registry("view", "orrery.page.views")
