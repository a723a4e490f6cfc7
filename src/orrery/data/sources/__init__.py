"""Where examples come from, one file each; `register` makes known what a program defines. This imports no torch."""

from typing import TYPE_CHECKING

from orrery.schema.lazy import lazily

if TYPE_CHECKING:
    from orrery.data.sources._source import (
        SOURCES,
        AnsweredSource,
        BatchRequest,
        BatchSource,
        DividedSource,
        Examples,
        HeldBack,
        Source,
        SourceSettings,
        register,
    )

__all__ = [
    "SOURCES",
    "AnsweredSource",
    "BatchRequest",
    "BatchSource",
    "DividedSource",
    "Examples",
    "HeldBack",
    "Source",
    "SourceSettings",
    "register",
]


__getattr__ = lazily(__name__, {"_source": __all__})
