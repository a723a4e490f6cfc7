"""What is read of a forward pass that was recorded: its tensors by key, and what ran."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol, runtime_checkable

from torch import Tensor

from orrery.inspection.call import ModelRun
from orrery.models.model import Model


@runtime_checkable
class Recorded(Protocol):
    """Tensors by key: a trace, or a mapping."""

    def __getitem__(self, key: str) -> Tensor:
        """Return the tensor of a key."""
        ...

    def __contains__(self, key: object) -> bool:
        """Say whether there is one."""
        ...


@runtime_checkable
class RecordedPass(Recorded, Protocol):
    """A whole pass as every analysis reads it; ``Trace`` is one, and has the analyses as its methods."""

    def __iter__(self) -> Iterator[str]:
        """Yield the keys of the kept tensors."""
        ...

    @property
    def model(self) -> Model:
        """Return what ran."""
        ...

    @property
    def inputs(self) -> Sequence[Tensor]:
        """Return all that it read, in its order."""
        ...

    @property
    def ids(self) -> Tensor:
        """Return the last of what it read: the tokens that were written, where a source was read beside them."""
        ...

    @property
    def logits(self) -> Tensor:
        """Return what the main head gave."""
        ...

    @property
    def values(self) -> Mapping[str, Tensor]:
        """Return the kept tensors."""
        ...

    @property
    def call(self) -> ModelRun:
        """Return how it was run."""
        ...
