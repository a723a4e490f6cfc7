"""What a model reads: which fields of a batch, and what each of them holds."""

from collections.abc import Mapping
from typing import TypeAlias

from torch import Tensor

from orrery.nn.inputs import Input

Batch: TypeAlias = Mapping[str, Tensor]
"""Named tensors: what a model reads (``ids``, ``source``, ``images``), what says how, and what an objective needs."""

HOW = ("real", "source_real", "positions", "documents", "prefix", "token_types", "kept", "noise")
"""The fields that say how to read the others; a model that cannot do so refuses them."""

Inputs: TypeAlias = Mapping[str, Input]
"""What a model reads, by the name of the field, in the order in which a call may give them."""
