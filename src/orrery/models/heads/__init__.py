"""Heads that a recipe can add to a model, one file each; `register` makes known what a program defines."""

from typing import TYPE_CHECKING

from orrery.schema.lazy import lazily

if TYPE_CHECKING:
    from orrery.models.heads._head import HEADS, Head, HeadSettings, register

__all__ = ["HEADS", "Head", "HeadSettings", "register"]


__getattr__ = lazily(__name__, {"_head": __all__})
