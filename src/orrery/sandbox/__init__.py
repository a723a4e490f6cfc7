"""Generated Python code, run apart: no network, no files of the user, limits on everything."""

from typing import TYPE_CHECKING

from orrery.schema.lazy import lazily

if TYPE_CHECKING:
    from orrery.sandbox.run import check, check_all, isolation
    from orrery.sandbox.verdict import Exam, Outcome, SandboxLimits, Verdict

__all__ = ["Exam", "Outcome", "SandboxLimits", "Verdict", "check", "check_all", "isolation"]


__getattr__ = lazily(
    __name__, {"run": ("check", "check_all", "isolation"), "verdict": ("Exam", "SandboxLimits", "Outcome", "Verdict")}
)
