"""One file a model family: a function from its configuration to a spec, and rules of its weight files."""

from typing import TYPE_CHECKING

from orrery.schema.lazy import lazily

if TYPE_CHECKING:
    from orrery.families._answering import answering
    from orrery.families._registry import (
        Family,
        current_names,
        defaults_of,
        ends_of_texts,
        initial_stds,
        is_row_decoder,
        library_of,
        load_family,
        model_type,
        names,
        other_heads,
        part_of_texts,
        register,
        rules_of,
        spec_of,
    )

__all__ = [
    "Family",
    "answering",
    "current_names",
    "defaults_of",
    "ends_of_texts",
    "initial_stds",
    "is_row_decoder",
    "library_of",
    "load_family",
    "model_type",
    "names",
    "other_heads",
    "part_of_texts",
    "register",
    "rules_of",
    "spec_of",
]


__getattr__ = lazily(
    __name__, {"_answering": ("answering",), "_registry": [name for name in __all__ if name != "answering"]}
)
