"""A plain autoencoder of pictures: all of a picture from one narrow vector."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from orrery.objectives import Term, register
from orrery.objectives._pixels import DrawnObjective, DrawnSettings, squared_error
from orrery.schema.numbers import Positive

if TYPE_CHECKING:
    from torch import Tensor, nn

    from orrery.models.inputs import Batch

TERM = "pixels"


@register
class Autoencoder(DrawnObjective):
    """``|decoder(W encoder(x)_class) - x|^2``: the mean over all pixels, from a code of a few numbers.

    Rumelhart, Hinton and Williams 1986; Hinton and Salakhutdinov 2006: what does not fit through the narrow middle is
    left out, so that it has to say what matters. A batch has ``images``.

    Differs from them: encoder and decoder are the blocks of a ViT, and the code is a map of the class token's vector.
    """

    class Settings(DrawnSettings):
        """``code`` is the numbers of the middle; pixels are drawn as they are unless ``normalise`` is asked for."""

        kind: Literal["autoencoder"] = "autoencoder"
        code: Positive = 16
        normalise: bool = False

    def __init__(
        self, code: int = 16, width: int = 64, layers: int = 1, heads: int = 4, normalise: bool = False
    ) -> None:
        super().__init__(width, layers, heads, normalise)
        self.code = code
        self.middle: nn.Module
        self.decoder: nn.Module

    def modules(self, model: "nn.Module") -> "Mapping[str, nn.Module]":
        """Return the narrow middle and the decoder."""
        from torch import nn

        from orrery.models.patch_decoder import PatchDecoder

        own: Any = model
        self.middle = nn.Linear(own.spec.width, self.code)
        self.decoder = PatchDecoder(own.spec, *self.sizes, entering=self.code)
        return {"middle": self.middle, "decoder": self.decoder}

    def counts(self, batch: "Batch") -> dict[str, int]:
        """Count the patches."""
        return {TERM: len(batch["images"]) * (self.embed.tokens - 1)}

    def loss(self, model: Any, batch: "Batch") -> dict[str, Term]:
        """Return the summed error of all patches."""
        from orrery.models.model import HIDDEN

        wanted = self.wanted(batch)

        def drawn(head: "nn.Module", x_BLD: "Tensor", real: "Tensor | None") -> "Tensor":
            code = self.middle(x_BLD[:, :1])
            first = code.new_zeros((len(code), 1)).long()
            return squared_error(self.decoder(code, first), wanted)

        found: Tensor = model(batch, {HIDDEN: drawn})[HIDDEN]
        return {TERM: Term(found.sum(), found.numel())}
