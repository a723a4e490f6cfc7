"""Labs: a question of the course each, a figure and claims that hold by a margin."""

from typing import TYPE_CHECKING

from orrery.schema.lazy import lazily

if TYPE_CHECKING:
    from orrery_course.labs._all import PAGE, carry_out_all, results, write_page
    from orrery_course.labs._lab import FILES, Lab, LabResult, carry_out, flat, load_lab, questions, readable, register

_LAB = ["FILES", "Lab", "LabResult", "carry_out", "flat", "load_lab", "questions", "readable", "register"]
_ALL = ["PAGE", "carry_out_all", "results", "write_page"]
__all__ = [
    "FILES",
    "PAGE",
    "Lab",
    "LabResult",
    "carry_out",
    "carry_out_all",
    "flat",
    "load_lab",
    "questions",
    "readable",
    "register",
    "results",
    "write_page",
]


__getattr__ = lazily(__name__, {"_all": _ALL, "_lab": _LAB})
