"""A head on every patch of a picture: which thing is there, and the box around it."""

from typing import TYPE_CHECKING, Literal

from orrery.models.heads import Head, HeadSettings, register
from orrery.models.heads._head import counted
from orrery.models.heads._patches import no_patches, patches_of
from orrery.schema.numbers import Positive

if TYPE_CHECKING:
    from orrery.models.model import ModelSpec
    from orrery.nn.spec import ModuleSpec


class BoxHeadSettings(HeadSettings):
    """``labels`` things that a patch may show; an objective that learns them fills in how many, and their names."""

    kind: Literal["boxes"] = "boxes"
    labels: Positive | None = None
    names: tuple[str, ...] = ()


@register
class Boxes(Head):
    """The thing that a patch shows, or none, and the box around it."""

    Settings = BoxHeadSettings

    @staticmethod
    def spec(settings: BoxHeadSettings) -> "ModuleSpec":
        """Refuse: it depends on how the model cuts pictures."""
        raise no_patches(settings.kind)

    @classmethod
    def over(cls, settings: BoxHeadSettings, model: "ModelSpec") -> "ModuleSpec":
        """Return the head for the patches of a model.

        Raises:
            UsageError: it has none.
        """
        from orrery.nn.picture_heads import BoxHead

        embed, labels = patches_of(model, settings.kind), counted(settings.labels, settings.kind)
        return BoxHead.Spec(labels=labels, grid=embed.grid, names=settings.names)
