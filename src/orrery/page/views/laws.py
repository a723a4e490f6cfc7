"""The laws that every family obeys, as evidence says: a cell for each law and family."""

from typing import Any, ClassVar

from orrery.inspection.checks import Check
from orrery.page.views._laws import matrix, read_report
from orrery.page.views._payload import Payload
from orrery.page.views._view import View, ViewSubject, register


@register
class Laws(View):
    """What a file of ``orrery verify --json`` holds: the one that was given, or the one of the run."""

    kind: ClassVar[str] = "laws"
    screen: ClassVar[str] = "trust"
    order: ClassVar[int] = 10

    def fits(self, subject: ViewSubject) -> bool:
        """Say whether there is such a file."""
        return subject.evidence is not None

    def payload(self, subject: ViewSubject, settings: Any) -> Payload:
        """Return the matrix, and every check behind it."""
        path = subject.evidence
        assert path is not None
        report = read_report(path)
        facts = matrix(report)
        counted = sum(cell["count"] for cell in facts["cells"])
        failed = sum(cell["failed"] for cell in facts["cells"])
        known = sum(not check["passed"] for check in report["checks"])
        checks = [
            Check("every check of the file stands in one cell", float(abs(counted - len(report["checks"]))), 0.0),
            Check("the cells that fail count every check that failed", float(abs(failed - known)), 0.0),
        ]
        return Payload({"source": path.name, **facts}, checks=checks)
