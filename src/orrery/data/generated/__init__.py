"""Labelled sets that are made on this machine, one file each; `register` makes known what a program defines."""

from typing import TYPE_CHECKING

from orrery.schema.lazy import lazily

if TYPE_CHECKING:
    from orrery.data.generated._set import GENERATED, GeneratedSet, Made, find, names, register, table

__all__ = ["GENERATED", "GeneratedSet", "Made", "find", "names", "register", "table"]


__getattr__ = lazily(__name__, {"_set": __all__})
