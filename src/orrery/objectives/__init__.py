"""What models learn, one file each; `register` makes known what a program defines. Importing this imports no torch."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from orrery.objectives._objective import OBJECTIVES, Objective, Term, register

__all__ = ["OBJECTIVES", "Objective", "Term", "register"]


def __getattr__(name: str) -> Any:
    """Import on first use."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from orrery.objectives import _objective

    return getattr(_objective, name)
