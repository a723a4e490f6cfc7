"""Images as rows of vectors: cut into patches, each projected, behind a class token."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from orrery.errors import UsageError
from orrery.nn.inputs import Images
from orrery.nn.norms import LayerNorm
from orrery.nn.positions.grid import PatchGrid
from orrery.nn.residual import Identity
from orrery.nn.spec import ModuleSpec, spec


class AppendedTokens(nn.Module):
    """``[x; t_1; ...; t_N]``: learned tokens at the end of every row (DeiT's distillation token, YOLOS' detections).

    Touvron et al. 2021, section 4; Fang et al. 2021, 3.1. Shapes: ``[B, L, D]`` to ``[B, L + tokens, D]``.
    """

    @spec
    class Spec(ModuleSpec):
        """How many there are."""

        tokens: int

        def build(self, width: int) -> "AppendedTokens":
            """Return the tokens."""
            return AppendedTokens(self.tokens, width)

    def __init__(self, tokens: int, width: int) -> None:
        super().__init__()
        self.learned = nn.Embedding(tokens, width)

    def forward(self, x_BLD: Float[Tensor, "B L D"]) -> Float[Tensor, "B L2 D"]:
        """Put the tokens behind every row."""
        return torch.cat([x_BLD, self.learned.weight.expand(len(x_BLD), -1, -1)], dim=1)


class PatchEmbedding(nn.Module):
    """``[class; E patch_1; ...; E patch_N]``, patches in the order of reading (Dosovitskiy et al. 2021, 3.1).

    The projection is a convolution whose steps are as long as its kernel: each patch meets the same matrix.
    Shapes: images ``[B, channels, rows, columns]`` to ``[B, 1 + N, D]``.
    """

    @spec
    class Spec(ModuleSpec):
        """Rows and columns of an image and of a patch; what a last, narrower patch would hold is left out.

        ``image`` is the size that the model is made for: it reads others too. ``first`` appends tokens to the class
        token, ``last`` to the patches.
        """

        image: tuple[int, int]
        patch: tuple[int, int]
        channels: int = 3
        bias: bool = True
        first: ModuleSpec = Identity.Spec()
        last: ModuleSpec = Identity.Spec()

        @property
        def grid(self) -> PatchGrid:
            """The patches of an image of this size, and the tokens around them.

            Raises:
                UsageError: not a single patch fits into the image.
            """
            if any(side < 1 or whole < side for whole, side in zip(self.image, self.patch, strict=True)):
                raise UsageError(f"an image of {self.image} holds no patch of {self.patch}", "choose smaller patches")
            rows, columns = (whole // side for whole, side in zip(self.image, self.patch, strict=True))
            before, after = (getattr(slot, "tokens", 0) for slot in (self.first, self.last))
            return PatchGrid(rows=rows, columns=columns, before=1 + before, after=after)

        @property
        def tokens(self) -> int:
            """The length of a row: every patch, the class token and those that are appended."""
            return self.grid.places

        @property
        def input(self) -> Images:
            """What it reads."""
            return Images(self.channels, *self.image, patch=self.patch)

        def build(self, width: int) -> "PatchEmbedding":
            """Return the embedding.

            Raises:
                UsageError: an image without channels.
            """
            if self.channels < 1:
                raise UsageError(f"an image of {self.channels} channels", "grey images have one, coloured ones three")
            return PatchEmbedding(self, width)

    def __init__(self, spec: Spec, width: int) -> None:
        super().__init__()
        self.input = spec.input
        self.class_token = nn.Parameter(torch.zeros(width))
        self.project = nn.Conv2d(spec.channels, width, kernel_size=spec.patch, stride=spec.patch, bias=spec.bias)
        self.first, self.last = spec.first.build(width), spec.last.build(width)

    def forward(
        self, images: Float[Tensor, "B channels rows columns"], token_types: None = None
    ) -> Float[Tensor, "B L D"]:
        """Cut, project, and put the class token first."""
        patches_BND = self.project(images).flatten(2).mT
        first_B1D = self.class_token.expand(len(images), 1, -1)
        return self.last(torch.cat([self.first(first_B1D), patches_BND], dim=1))


class OverlappingPatches(nn.Module):
    """``norm(W * x)``: patches that share points with their neighbours, without a class token (Xie et al. 2021, 3.1).

    Shapes: images ``[B, channels, rows, columns]`` to ``[B, L, D]``, one patch every ``stride`` points.
    """

    @spec
    class Spec(ModuleSpec):
        """Sides of a patch, and how far apart two patches begin; ``image`` is the size that the model is made for."""

        image: tuple[int, int]
        patch: int
        stride: int
        channels: int = 3

        @property
        def input(self) -> Images:
            """What it reads."""
            side, half = self.patch, self.patch // 2
            return Images(
                self.channels, *self.image, patch=(side, side), stride=(self.stride,) * 2, padding=(half, half)
            )

        @property
        def tokens(self) -> int:
            """The length of the row of an image of this size."""
            rows, columns = self.input.grid(*self.image)
            return rows * columns

        def build(self, width: int) -> "OverlappingPatches":
            """Return the embedding."""
            return OverlappingPatches(self, width)

    def __init__(self, spec: Spec, width: int) -> None:
        super().__init__()
        self.input = spec.input
        half = spec.patch // 2
        self.project = nn.Conv2d(spec.channels, width, kernel_size=spec.patch, stride=spec.stride, padding=half)
        self.norm = LayerNorm.Spec().build(width)

    def forward(
        self, images: Float[Tensor, "B channels rows columns"], segments: None = None
    ) -> Float[Tensor, "B L D"]:
        """Cut, project and normalise."""
        return self.norm(self.project(images).flatten(2).mT)
