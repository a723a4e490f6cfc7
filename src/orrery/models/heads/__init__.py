"""Heads that a recipe can add to a model, one file each; `register` makes known what a program defines."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from orrery.models.heads._head import HEADS, Head, HeadSettings, register

__all__ = ["HEADS", "Head", "HeadSettings", "register"]


def __getattr__(name: str) -> Any:
    """Import on first use: this imports no torch."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from orrery.models.heads import _head

    return getattr(_head, name)
