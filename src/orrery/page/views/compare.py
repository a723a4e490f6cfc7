"""What differs between the architecture of the model and another: of a family, or of a run beside it."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar

from orrery.errors import UsageError
from orrery.exchange.reading.architecture import described, is_family, of_family
from orrery.exchange.reading.read import locate
from orrery.families import names
from orrery.inspection.checks import Check
from orrery.page.views._payload import Payload
from orrery.page.views._view import View, ViewSubject, register
from orrery.planning.spec_tree import SpecNode, differences, tree
from orrery.schema.section import Section
from orrery.tuning import numbers_of

MOST = 200
"""Runs that are offered."""


class CompareSettings(Section):
    """What can be asked.

    Attributes:
        other: a family, or a run in the folder of this model's run; without it what there is to choose.
    """

    other: str | None = None


@register
class Compare(View):
    """``orrery show --diff``: parts that only one has, and settings that are not the same."""

    kind: ClassVar[str] = "compare"
    screen: ClassVar[str] = "model"
    order: ClassVar[int] = 40
    Settings: ClassVar[type[Section]] = CompareSettings

    def fits(self, subject: ViewSubject) -> bool:
        """Say that every model can be compared."""
        return True

    def saved(self, subject: ViewSubject) -> Iterable[Section]:
        """Return the comparison with the model's own family at the size of its defaults."""
        family = subject.lm.family
        return [CompareSettings(), *([CompareSettings(other=family)] if family in names() else [])]

    def payload(self, subject: ViewSubject, settings: CompareSettings) -> Payload:
        """Return the differences.

        Raises:
            UsageError: the other is none of those that are offered: no path is taken from a page.
        """
        runs, model = _runs(subject), subject.lm.model
        facts: dict[str, Any] = {"families": names(), "runs": sorted(runs), "name": subject.lm.stored.name}
        if settings.other is None:
            return Payload(facts)
        own = tree(model.spec, subject.lm.stored.name, model.transforms)
        other = _other(settings.other, runs)
        changes = [vars(difference) for difference in differences(own, other)]
        facts |= {
            "other": settings.other,
            "differences": changes,
            "parameters": [own.parameters or 0, other.parameters or 0],
        }
        numbers = numbers_of(model)
        added = sum(node.parameters or 0 for node in own.children if node.name.startswith("transform "))
        return Payload(
            facts,
            checks=[
                Check("the model does not differ from itself", float(len(list(differences(own, own)))), 0.0),
                Check(
                    "the parameters of its tree are those of the loaded model",
                    float(abs((own.parameters or 0) + added - numbers)),
                    0.0,
                ),
            ],
        )


def _runs(subject: ViewSubject) -> dict[str, Path]:
    """Return the other runs in the folder of this model's run, by name."""
    run = subject.run
    if run is None:
        return {}
    others = sorted(path for path in run.parent.iterdir() if path.is_dir() and path.name != run.name)
    return {path.name: path for path in others if (path / "config.yaml").is_file()} if len(others) <= MOST else {}


def _other(name: str, runs: dict[str, Path]) -> SpecNode:
    if name in runs:
        description = described(locate(runs[name]))
        return tree(description.spec, name, description.transforms)
    if not is_family(name):
        raise UsageError(f"there is no family or run {name[:100]!r} to compare with", f"families: {', '.join(names())}")
    return tree(of_family(name), name)
