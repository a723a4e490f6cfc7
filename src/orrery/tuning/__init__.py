"""Transforms of a finished model: the names of what is there stay, and new tensors stand beside them."""

from typing import TYPE_CHECKING

from orrery.schema.lazy import lazily

if TYPE_CHECKING:
    from orrery.tuning._adapter import Adapter
    from orrery.tuning._calibrate import apply_calibrated
    from orrery.tuning._description import TRANSFORMS, describe, refuse_transformed, refuse_untrainable, spec_json
    from orrery.tuning._linear import (
        BlockEmbedding,
        TransformedLinear,
        matrices_kept,
        matrix_of,
        merge,
        numbers_of,
        shapes_of,
    )
    from orrery.tuning._registry import from_json, load_transform, names, register
    from orrery.tuning._row_adapters import RowAdapters, lora_pairs
    from orrery.tuning._transform import Transform

__all__ = [
    "TRANSFORMS",
    "Adapter",
    "BlockEmbedding",
    "RowAdapters",
    "Transform",
    "TransformedLinear",
    "apply_calibrated",
    "describe",
    "from_json",
    "load_transform",
    "lora_pairs",
    "matrices_kept",
    "matrix_of",
    "merge",
    "names",
    "numbers_of",
    "refuse_transformed",
    "refuse_untrainable",
    "register",
    "shapes_of",
    "spec_json",
]


__getattr__ = lazily(
    __name__,
    {
        "_adapter": ("Adapter",),
        "_calibrate": ("apply_calibrated",),
        "_description": ("TRANSFORMS", "describe", "refuse_transformed", "refuse_untrainable", "spec_json"),
        "_linear": (
            "BlockEmbedding",
            "TransformedLinear",
            "matrices_kept",
            "matrix_of",
            "merge",
            "numbers_of",
            "shapes_of",
        ),
        "_row_adapters": ("RowAdapters", "lora_pairs"),
        "_registry": ("from_json", "load_transform", "names", "register"),
        "_transform": ("Transform",),
    },
)
