"""What models learn, one file each; `register` makes known what a program defines. Importing this imports no torch."""

from typing import TYPE_CHECKING

from orrery.schema.lazy import lazily

if TYPE_CHECKING:
    from orrery.objectives._heads import NeededHead
    from orrery.objectives._objective import OBJECTIVES, Objective, Term, register

__all__ = ["OBJECTIVES", "NeededHead", "Objective", "Term", "register"]


__getattr__ = lazily(
    __name__, {"_heads": ("NeededHead",), "_objective": ("OBJECTIVES", "Objective", "Term", "register")}
)
