"""Labs: a question of the course each, a figure and claims that hold by a margin."""

from typing import TYPE_CHECKING

from orrery.schema.lazy import lazily

if TYPE_CHECKING:
    from orrery.labs._lab import FILES, Lab, LabResult, carry_out, load_lab, questions, register

__all__ = ["FILES", "Lab", "LabResult", "carry_out", "load_lab", "questions", "register"]


__getattr__ = lazily(__name__, {"_lab": __all__})
