"""What a trace was made of, so that it can be made again with something changed."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar, final

from jaxtyping import Shaped
from torch import Tensor

from orrery.inspection.edits import Edit
from orrery.models.model import Model

Seen = TypeVar("Seen")
"""What looking gives: a trace."""


@final
@dataclass(frozen=True)
class ModelRun(Generic[Seen]):
    """One run of a model.

    Attributes:
        look: what runs a model and looks inside: ``orrery.inspection.trace.trace``, which stands above all that edits.
        model: what ran.
        inputs: what it read, in the order of ``model.spec.inputs``.
        edit: the functions that changed tensors inside it.
        how: what else the model was told: ``real``, ``token_types``, ...
        tokens: the spelling of the ids.
        source_tokens: that of the source, where there is one.
        spell: gives the spelling of an id, where a tokenizer was at hand.
    """

    look: Callable[..., Seen]
    model: Model
    inputs: tuple[Shaped[Tensor, "B ..."], ...]
    edit: Mapping[str, Edit] = field(default_factory=dict)
    how: Mapping[str, Any] = field(default_factory=dict)
    tokens: Sequence[str] = ()
    source_tokens: Sequence[str] = ()
    spell: Callable[[int], str] | None = None
