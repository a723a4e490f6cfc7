"""What models learn, one file each; `register` makes known what a program defines. Importing this imports no torch."""

from typing import TYPE_CHECKING

from orrery.schema.lazy import lazily

if TYPE_CHECKING:
    from orrery.objectives._objective import OBJECTIVES, Objective, Term, register

__all__ = ["OBJECTIVES", "Objective", "Term", "register"]


__getattr__ = lazily(__name__, {"_objective": __all__})
