"""What the objectives that draw pictures share: the decoder's settings, the pixels that are wanted, their error."""

from abc import ABC
from typing import TYPE_CHECKING, Any

from orrery.errors import UsageError
from orrery.objectives import Objective
from orrery.schema.numbers import Positive
from orrery.schema.registry import label_of
from orrery.schema.section import Section

if TYPE_CHECKING:
    from torch import Tensor

    from orrery.models.inputs import Batch
    from orrery.models.model import ModelSpec
    from orrery.nn.patches import PatchEmbedding
    from orrery.text.tokenizer import Tokenizer

ALMOST_NOTHING = 1e-6
"""Added to the variance of a patch before it is divided by, as the reference does."""


class DrawnSettings(Section, ABC):
    """``width``, ``layers`` and ``heads`` are those of the decoder that draws; it is left behind after training.

    With ``normalise`` each patch is wanted less its mean and over its deviation, so that shape counts and not light.
    """

    width: Positive = 64
    layers: Positive = 1
    heads: Positive = 4
    normalise: bool = True


class DrawnObjective(Objective, ABC):
    """An objective over the pixels of a picture's patches, drawn by a decoder that the objective owns."""

    needs = ("images",)

    def __init__(self, width: int, layers: int, heads: int, normalise: bool) -> None:
        self.sizes, self.normalise = (width, layers, heads), normalise
        self.embed: PatchEmbedding.Spec

    def bind(self, spec: "ModelSpec", tokenizer: "Tokenizer | None") -> None:
        """Take how a picture is cut.

        Raises:
            UsageError: the model is no encoder of patches behind a class token.
        """
        from orrery.nn.patches import PatchEmbedding

        embed = getattr(spec, "embed", None)
        if not isinstance(embed, PatchEmbedding.Spec) or embed.tokens != 1 + embed.grid.rows * embed.grid.columns:
            what = f"the objective {label_of(type(self))} needs an encoder of patches behind a class token"
            raise UsageError(what, "train a vit")
        self.embed = embed

    def heads(self, spec: "ModelSpec") -> tuple[str, ...]:
        """Return none: the final stream is trained."""
        return ()

    def wanted(self, batch: "Batch") -> "Tensor":
        """Return the pixels of each patch, ``[B, patches, pixels]``, as they are to be drawn."""
        from orrery.models.patch_decoder import patches_of

        found = patches_of(batch["images"], self.embed)
        if not self.normalise:
            return found
        mean = found.mean(-1, keepdim=True)
        return (found - mean) / (found.var(-1, keepdim=True) + ALMOST_NOTHING).sqrt()


def squared_error(drawn: Any, wanted: Any) -> "Tensor":
    """Return the mean squared error of each patch, ``[B, patches]``, in float32 at least."""
    import torch

    wide = torch.promote_types(drawn.dtype, torch.float32)
    found: Tensor = (drawn.to(wide) - wanted.to(wide)).square().mean(-1)
    return found
