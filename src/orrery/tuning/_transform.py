"""What a transform is: a small frozen record of settings that changes a finished model and is listed in spec.json."""

from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from orrery.errors import UsageError
from orrery.models.model import Model
from orrery.models.soundness import fault_of


@dataclass(frozen=True, kw_only=True)
class Transform(ABC):
    """The settings of one change of a finished model.

    What it wraps keeps its tensors under their names, the same objects, so that tied weights stay tied; what it adds
    has names of its own beside them. ``kind`` is the name of its file in this package, or the name it is registered by.

    Raises:
        UsageError: a setting has a value that cannot be meant.
    """

    kind: ClassVar[str]
    merges: ClassVar[bool] = True
    """Whether plain matrices can compute what the changed model does."""

    def __post_init__(self) -> None:
        """Refuse settings that cannot be meant."""
        if fault := fault_of(self):
            raise UsageError(f"{self.kind}: {fault}", "correct the setting")

    @abstractmethod
    def apply(self, model: Model, seed: int = 1337) -> Model:
        """Change a model in place, note it in ``model.transforms``, and return the model.

        The same transform of a model on the meta device gives the same names, shapes and dtypes without memory.

        Args:
            model: a finished model, with its weights or on the meta device.
            seed: of what is drawn, if anything is.

        Raises:
            UsageError: the model has nothing that the settings name, or what they name cannot be changed so.
        """

    def as_json(self) -> dict[str, Any]:
        """Return what spec.json lists; ``from_json`` is the inverse."""
        settings = {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}
        return {"kind": self.kind, **settings}
