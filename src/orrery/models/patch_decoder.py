"""The part that draws a picture from the vectors of some of its patches, and is thrown away after pre-training."""

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from orrery.errors import UsageError
from orrery.models.initialise import initialise
from orrery.models.model import ModelSpec
from orrery.models.places import placed
from orrery.nn.attention.kernels import sdpa
from orrery.nn.attention.multihead import Biases, MultiHeadAttention
from orrery.nn.block import Block
from orrery.nn.cache.contract import UNCACHED
from orrery.nn.context import Execution
from orrery.nn.feedforward.mlp import MLP
from orrery.nn.masks import Full
from orrery.nn.norms import LayerNorm
from orrery.nn.patches import PatchEmbedding
from orrery.nn.positions.learned import LearnedPositions
from orrery.nn.residual import Residual
from orrery.nn.stack import Stack, repeat


class PatchDecoder(nn.Module):
    """``W stack(x at its places, a learned vector m at all others)``: every pixel of every patch (He et al. 2022, 3).

    Shapes: ``[B, N, D]`` with the places of each vector ``[B, N]``, of a row of L, to ``[B, L - 1, pixels]``: place 0
    is the class token's, which has no pixels. Differs from the reference, whose positions are fixed sinusoids: here
    they are learned.

    Args:
        spec: of the encoder whose vectors are read; its patches are drawn.
        width: of the decoder.
        layers: its blocks, those of a ViT.
        heads: of each block.
        entering: channels of the vectors that come; by default the encoder's.
    """

    def __init__(self, spec: ModelSpec, width: int, layers: int, heads: int, entering: int | None = None) -> None:
        super().__init__()
        own: Any = spec
        embed = own.embed
        self.length = spec.context
        self.enter = nn.Linear(entering or spec.width, width)
        self.hidden = nn.Embedding(1, width)
        self.stack: Stack = stack_of(self.length, width, layers, heads).build(width)
        self.pixels = nn.Linear(width, embed.channels * embed.patch[0] * embed.patch[1])
        initialise(self, layers, torch.initial_seed())

    def forward(
        self, x_BND: Float[Tensor, "B N D"], places_BN: Int[Tensor, "B N"]
    ) -> Float[Tensor, "B patches pixels"]:
        """Put the vectors at their places, and draw."""
        x_BNE = self.enter(x_BND)
        rows_BLE = self.hidden.weight.expand(len(x_BNE), self.length, -1).to(x_BNE.dtype)
        rows_BLE = rows_BLE.scatter(1, places_BN[..., None].expand(-1, -1, x_BNE.shape[-1]), x_BNE)
        at = placed(self.stack, rows_BLE)
        how = Execution(kernel=sdpa)
        stream, ctx = self.stack.prepare(rows_BLE, at.places, None, whole=True, cache=UNCACHED, execution=how)
        return self.pixels(self.stack(stream, ctx)[:, 1:])


def stack_of(length: int, width: int, layers: int, heads: int) -> Stack.Spec:
    """Return the blocks of a ViT (Dosovitskiy et al. 2021, 3.1) over rows of so many places.

    Raises:
        UsageError: the heads do not divide the width.
    """
    if width % heads:
        raise UsageError(f"a decoder of width {width} with {heads} heads", "choose a width that the heads divide")
    attention = MultiHeadAttention.Spec(
        heads=heads,
        kv_heads=heads,
        head_width=width // heads,
        biases=Biases(q=True, k=True, v=True, out=True),
        mask="all",
    )
    residuals = {
        "attention": Residual.Spec(branch=attention, pre=LayerNorm.Spec()),
        "feed_forward": Residual.Spec(branch=MLP.Spec(hidden=4 * width, activation="gelu"), pre=LayerNorm.Spec()),
    }
    return Stack.Spec(
        blocks=repeat(Block.Spec(residuals=residuals), layers),
        final=LayerNorm.Spec(),
        positions={"learned": LearnedPositions.Spec(length=length)},
        masks={"all": Full()},
    )


def patches_of(images: Float[Tensor, "B channels rows columns"], embed: PatchEmbedding.Spec) -> Tensor:
    """Return the pixels of every patch, ``[B, patches, pixels]``, in the order of reading; a narrower rest is left out.

    Within a patch they are in the order of rows, columns, channels.
    """
    (rows, columns), channels = embed.patch, embed.channels
    high, wide = images.shape[2] // rows, images.shape[3] // columns
    cut = images[..., : high * rows, : wide * columns].unflatten(3, (wide, columns)).unflatten(2, (high, rows))
    return cut.permute(0, 2, 4, 3, 5, 1).reshape(len(images), high * wide, rows * columns * channels)


def pictures_of(patches: Float[Tensor, "B patches pixels"], embed: PatchEmbedding.Spec) -> Tensor:
    """Return the pictures that patches make, ``[B, channels, rows, columns]``: the inverse of ``patches_of``."""
    (rows, columns), channels = embed.patch, embed.channels
    high, wide = embed.image[0] // rows, embed.image[1] // columns
    cut = patches.reshape(len(patches), high, wide, rows, columns, channels)
    return cut.permute(0, 5, 1, 3, 2, 4).reshape(len(patches), channels, high * rows, wide * columns)
