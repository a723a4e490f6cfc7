"""What a head of a recipe is: settings, and the part of the architecture that they describe."""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

from orrery.errors import UsageError
from orrery.schema.registry import Registry
from orrery.schema.section import Section

if TYPE_CHECKING:
    from orrery.models.model import ModelSpec
    from orrery.nn.spec import ModuleSpec


class HeadSettings(Section):
    """A head beside the model's own, in a recipe."""

    kind: str


class Head(ABC):
    """A head that a recipe can add to a model: ``model.heads: {NAME: {kind: ...}}``.

    One file each, ``models/heads/NAME.py``; a program defines its own and makes it known with ``register``. Torch is
    imported where it is used, so that a recipe is read without it.

    Attributes:
        Settings: its section of a recipe; the default of ``kind`` is its name.
    """

    Settings: ClassVar[type[HeadSettings]]

    @staticmethod
    @abstractmethod
    def spec(settings: Any) -> "ModuleSpec":
        """Return the part of the architecture; its module takes the final stream and which tokens are real."""

    @classmethod
    def over(cls, settings: Any, model: "ModelSpec") -> "ModuleSpec":
        """Return the part for a model: ``spec``, unless a head depends on how the model cuts its input."""
        return cls.spec(settings)


def counted(labels: int | None, kind: str) -> int:
    """Return the number of labels.

    Raises:
        UsageError: neither the recipe nor the data say how many there are.
    """
    if labels is None:
        raise UsageError(f"a head of kind {kind} has no number of labels", "give model.heads.NAME.labels")
    return labels


HEADS: Registry[Head] = Registry("head", "orrery.models.heads")
register = HEADS.register
