"""Masked patches: the pixels of hidden patches from those that are seen."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from orrery.objectives import Term, register
from orrery.objectives._pixels import DrawnObjective, DrawnSettings, squared_error
from orrery.schema.numbers import Part

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn

    from orrery.models.inputs import Batch
    from orrery.models.patch_decoder import PatchDecoder

TERM = "pixels"


@register
class MaskedPatches(DrawnObjective):
    """``|decoder(encoder(the patches seen)) - pixels|^2`` of the hidden patches, the mean over their pixels.

    He et al. 2022, sections 3 and 4: the encoder reads the patches that are seen and no others, so that a step costs
    little; which are hidden is drawn again in each step. A batch has ``images``; ``prepare`` makes ``kept`` [B, N],
    the places that are read, the class token's among them.

    Differs from the reference: the positions of encoder and decoder are learned, and the decoder is the run's, not the
    model's, which stays a ViT that any task goes on from.
    """

    class Settings(DrawnSettings):
        """``hidden`` is the share of the patches that is hidden."""

        kind: Literal["masked_patches"] = "masked_patches"
        hidden: Part = 0.75

    makes = ("kept",)

    def __init__(
        self, hidden: float = 0.75, width: int = 64, layers: int = 1, heads: int = 4, normalise: bool = True
    ) -> None:
        super().__init__(width, layers, heads, normalise)
        self.hidden = hidden
        self.decoder: PatchDecoder

    def modules(self, model: "nn.Module") -> "Mapping[str, nn.Module]":
        """Return the decoder."""
        from orrery.models.patch_decoder import PatchDecoder

        own: Any = model
        self.decoder = PatchDecoder(own.spec, *self.sizes)
        return {"decoder": self.decoder}

    def seen(self, patches: int) -> int:
        """Return how many patches are seen: one at least, and not all."""
        return min(patches - 1, max(1, int(patches * (1 - self.hidden)))) if patches > 1 else 1

    def prepare(self, batch: "Batch", rng: "torch.Generator") -> "Batch":
        """Choose the patches that are seen."""
        import torch

        patches = self.embed.tokens - 1
        noise = torch.rand(len(batch["images"]), patches, generator=rng)
        chosen = noise.argsort(1)[:, : self.seen(patches)].sort(1).values
        return {**batch, "kept": torch.cat([torch.zeros_like(chosen[:, :1]), chosen + 1], 1)}

    def counts(self, batch: "Batch") -> dict[str, int]:
        """Count the hidden patches."""
        return {TERM: len(batch["kept"]) * (self.embed.tokens - batch["kept"].shape[1])}

    def tokens_of(self, batch: "Batch", counts: Mapping[str, int]) -> int:
        """Return the places that the encoder reads."""
        return batch["kept"].numel()

    def loss(self, model: Any, batch: "Batch") -> dict[str, Term]:
        """Return the summed error of the hidden patches."""
        from orrery.models.model import HIDDEN

        kept_BN = batch["kept"]
        wanted = self.wanted(batch)

        def drawn(head: "nn.Module", x_BND: "Tensor", real: "Tensor | None") -> "Tensor":
            return squared_error(self.decoder(x_BND, kept_BN), wanted)

        found: Tensor = model(batch, {HIDDEN: drawn})[HIDDEN]
        seen = found.new_ones(len(found), self.embed.tokens).scatter(1, kept_BN, 0.0)[:, 1:]
        return {TERM: Term((found * seen).sum(), int(seen.sum()))}
