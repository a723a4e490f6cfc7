"""The masked autoencoder: an encoder sees some patches of a picture, and a small decoder paints the others."""

from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from orrery.errors import UsageError
from orrery.models.encoder import Encoder
from orrery.models.inputs import Batch, Inputs
from orrery.models.kernel_choice import default_kernel
from orrery.models.model import Model, ModelSpec, build_heads
from orrery.models.places import placed
from orrery.nn.attention.kernels import Kernel
from orrery.nn.cache.contract import UNCACHED
from orrery.nn.context import Execution
from orrery.nn.patches import patches_of
from orrery.nn.restored import RestoredPatches
from orrery.nn.spec import ModuleSpec, spec
from orrery.nn.stack import Stack


class MaskedAutoencoder(Model):
    """``head(decoder(restore(projection(reader(kept patches)))))`` (He et al. 2022).

    The field ``noise`` ``[B, N]`` of a batch, a number a patch, says which patches are kept: those with the smallest.
    In the places of the others stands one learned vector. Differs from the reference: without noise nothing is hidden;
    there it is drawn then. Shapes: images ``[B, channels, rows, columns]`` to ``[B, N, points of a patch]``.
    """

    how = frozenset({"noise"})
    reader: Encoder

    @spec
    class Spec(ModelSpec):
        """The whole architecture.

        ``masked`` is the share of hidden patches; ``normed`` says that each patch is painted in its own mean and
        deviation; ``projection`` brings what was read to the decoder's width.
        """

        reader: Encoder.Spec
        decoder: Stack.Spec
        projection: ModuleSpec
        restore: RestoredPatches.Spec = RestoredPatches.Spec()
        masked: float = 0.75
        normed: bool = False

        @property
        def inputs(self) -> Inputs:
            """The images."""
            return self.reader.inputs

        @property
        def answering(self) -> Stack.Spec:
            """The stack that paints."""
            return self.decoder

        def build(self, width: int = 0) -> "MaskedAutoencoder":
            """Return the model, its weights as torch leaves them; the width is the spec's own."""
            return MaskedAutoencoder(self)

    def __init__(self, spec: Spec) -> None:
        super().__init__()
        self.spec = spec
        self.kernel: Kernel = default_kernel(spec)
        self.reader = spec.reader.build()
        self.projection = spec.projection.build(spec.reader.width)
        self.restore = spec.restore.build(spec.width)
        self.decoder = spec.decoder.build(spec.width)
        self.heads = build_heads(spec)
        self.reader.stand_before(self.decoder)

    @property
    def stack(self) -> Stack:  # type: ignore[override]
        """The stack that answers: the decoder."""
        return self.decoder

    def kept(self, noise_BN: Float[Tensor, "B N"]) -> Int[Tensor, "B N2"]:
        """Return the numbers of the patches that are seen, the one with the least noise first."""
        spec: Any = self.spec
        return noise_BN.argsort(dim=1)[:, : int(noise_BN.shape[1] * (1 - spec.masked))]

    def hidden_places(self, noise_BN: Float[Tensor, "B N"]) -> Bool[Tensor, "B N"]:
        """Return which patches are hidden."""
        hidden_BN = torch.ones_like(noise_BN, dtype=torch.bool)
        return hidden_BN.scatter(1, self.kept(noise_BN), False)

    def targets(self, images: Float[Tensor, "B channels rows columns"]) -> Float[Tensor, "B N E"]:
        """Return what is to be painted: the points of every patch, row by row, all channels of a point together.

        Where the model says so, less their mean and over their deviation, ``sqrt(var + 1e-6)`` (He et al. 2022, 3).
        """
        spec: Any = self.spec
        points_BNE = patches_of(images, spec.reader.embed.patch)
        if not spec.normed:
            return points_BNE
        centred_BNE = points_BNE - points_BNE.mean(-1, keepdim=True)
        return centred_BNE / (points_BNE.var(-1, keepdim=True) + 1e-6).sqrt()

    def stream(self, batch: Batch, execution: Execution) -> Float[Tensor, "B L D"]:
        """Return the final stream of the decoder, the class token first."""
        execution = execution.by_default(self.kernel, self.scan)
        x_BLM, ctx = self.reader.prepare(batch["images"], execution=execution)
        patches = x_BLM.shape[1] - 1
        kept_BN = self._kept(batch, patches, x_BLM.device)
        seen_BLM = torch.cat([x_BLM[:, :1], _rows(x_BLM[:, 1:], kept_BN)], dim=1)
        read_BLD = self.projection(self.reader.stack(seen_BLM, ctx))
        restored_BLD = torch.cat([read_BLD[:, :1], self.restore(read_BLD[:, 1:], kept_BN, patches)], dim=1)
        at = placed(self.decoder, restored_BLD)
        return self.decoder(
            *self.decoder.prepare(
                restored_BLD,
                at.places,
                at.real,
                whole=at.whole,
                cache=UNCACHED,
                execution=execution,
                grid=(1, patches),
            )
        )

    def _kept(self, batch: Batch, patches: int, device: torch.device) -> Int[Tensor, "B N2"]:
        """Return the numbers of the patches that are seen; without noise all of them.

        Raises:
            UsageError: there is not one number a patch.
        """
        rows = len(batch["images"])
        if "noise" not in batch:
            return torch.arange(patches, device=device).expand(rows, -1)
        if tuple(batch["noise"].shape) != (rows, patches):
            raise UsageError(
                f"noise of {list(batch['noise'].shape)} for {rows} pictures of {patches} patches",
                "give one number for each patch",
            )
        return self.kept(batch["noise"])


def _rows(x_BND: Tensor, chosen_BN: Tensor) -> Tensor:
    """Return some tokens of every row, in the order in which they are named."""
    return x_BND.gather(1, chosen_BN[..., None].expand(-1, -1, x_BND.shape[2]))
