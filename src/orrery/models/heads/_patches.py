"""What the heads over patches share: the patches of a model, and the refusal of one without."""

from typing import TYPE_CHECKING

from orrery.errors import UsageError

if TYPE_CHECKING:
    from orrery.models.model import ModelSpec
    from orrery.nn.patches import PatchEmbedding


def patches_of(model: "ModelSpec", kind: str) -> "PatchEmbedding.Spec":
    """Return how a model cuts pictures.

    Raises:
        UsageError: it reads none.
    """
    from orrery.nn.patches import PatchEmbedding

    embed = getattr(model, "embed", None)
    if not isinstance(embed, PatchEmbedding.Spec):
        raise no_patches(kind)
    return embed


def no_patches(kind: str) -> UsageError:
    """Return the error of a head over patches where there are none."""
    return UsageError(f"a head of kind {kind} stands on the patches of pictures", "give it to a vit")
