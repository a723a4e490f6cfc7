"""A head on every pixel of a picture: what it belongs to."""

from typing import TYPE_CHECKING, Literal

from orrery.models.heads import Head, HeadSettings, register
from orrery.models.heads._head import counted
from orrery.models.heads._patches import no_patches, patches_of
from orrery.schema.numbers import Positive

if TYPE_CHECKING:
    from orrery.models.model import ModelSpec
    from orrery.nn.spec import ModuleSpec


class PixelSettings(HeadSettings):
    """``labels`` scores for every pixel; an objective that learns labels fills in how many, and their names."""

    kind: Literal["pixel"] = "pixel"
    labels: Positive | None = None
    names: tuple[str, ...] = ()


@register
class Pixel(Head):
    """A linear map of a patch's vector to the labels of its pixels."""

    Settings = PixelSettings

    @staticmethod
    def spec(settings: PixelSettings) -> "ModuleSpec":
        """Refuse: it depends on how the model cuts pictures."""
        raise no_patches(settings.kind)

    @classmethod
    def over(cls, settings: PixelSettings, model: "ModelSpec") -> "ModuleSpec":
        """Return the head for the patches of a model.

        Raises:
            UsageError: it has none.
        """
        from orrery.nn.picture_heads import PixelHead

        embed = patches_of(model, settings.kind)
        labels = counted(settings.labels, settings.kind)
        return PixelHead.Spec(labels=labels, grid=embed.grid, patch=embed.patch, names=settings.names)
