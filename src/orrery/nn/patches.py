"""Images as rows of vectors: cut into patches, each projected, often behind a class token."""

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
    """``[x; t_1; ...; t_N]``: learned tokens at the end of every row, such as those that name things (YOLOS).

    Fang et al. 2021, 3.1. Shapes: ``[B, L, D]`` to ``[B, L + tokens, D]``.
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


class PrependedTokens(nn.Module):
    """``[t_1; ...; t_N; x]``: learned tokens at the beginning of every row, such as DeiT's for its teacher.

    Touvron et al. 2021, section 4. Shapes: ``[B, L, D]`` to ``[B, tokens + L, D]``.
    """

    @spec
    class Spec(ModuleSpec):
        """How many there are."""

        tokens: int

        def build(self, width: int) -> "PrependedTokens":
            """Return the tokens."""
            return PrependedTokens(self.tokens, width)

    def __init__(self, tokens: int, width: int) -> None:
        super().__init__()
        self.learned = nn.Embedding(tokens, width)

    def forward(self, x_BLD: Float[Tensor, "B L D"]) -> Float[Tensor, "B L2 D"]:
        """Put the tokens before every row."""
        return torch.cat([self.learned.weight.expand(len(x_BLD), -1, -1), x_BLD], dim=1)


class StoredToken(nn.Module):
    """``m``: the vector that stood in for hidden patches when a file's model was pre-trained (DINOv2, iBOT).

    It comes with a file and goes into it again. No pass reads it, so that no training moves it. Shapes: ``[D]``.
    """

    @spec
    class Spec(ModuleSpec):
        """It has no settings."""

        def build(self, width: int) -> "StoredToken":
            """Return a vector of zeros."""
            return StoredToken(width)

    def __init__(self, width: int) -> None:
        super().__init__()
        self.vector = nn.Parameter(torch.zeros(width))


class PatchEmbedding(nn.Module):
    """``[class; E patch_1; ...; E patch_N]``, patches in the order of reading (Dosovitskiy et al. 2021, 3.1).

    The projection is a convolution whose steps are as long as its kernel: each patch meets the same matrix.
    Shapes: images ``[B, channels, rows, columns]`` to ``[B, 1 + N, D]``.
    """

    @spec
    class Spec(ModuleSpec):
        """Rows and columns of an image and of a patch; what a last, narrower patch would hold is left out.

        ``image`` is the size that the model is made for: it reads others too. ``first`` puts tokens before the patches,
        behind the class token, ``last`` behind them; ``hidden`` keeps the vector of hidden patches that a file has.
        """

        image: tuple[int, int]
        patch: tuple[int, int]
        channels: int = 3
        bias: bool = True
        first: PrependedTokens.Spec | Identity.Spec = Identity.Spec()
        last: AppendedTokens.Spec | Identity.Spec = Identity.Spec()
        hidden: StoredToken.Spec | Identity.Spec = Identity.Spec()

        @property
        def grid(self) -> PatchGrid:
            """The patches of an image of this size, and the tokens around them.

            Raises:
                UsageError: not a single patch fits into the image.
            """
            rows, columns = _patches(self.image, self.patch)
            before, after = (getattr(slot, "tokens", 0) for slot in (self.first, self.last))
            return PatchGrid(rows=rows, columns=columns, before=1 + before, after=after)

        @property
        def tokens(self) -> int:
            """The length of a row: every patch, the class token and the others."""
            return self.grid.places

        @property
        def names(self) -> list[str]:
            """What the places of a row are called: ``class``, then each patch by its row and column."""
            grid, before = self.grid, [f"token {n}" for n in range(1, self.grid.before)]
            return [
                "class",
                *before,
                *names_of(grid.rows, grid.columns),
                *[f"token {n + 1}" for n in range(grid.after)],
            ]

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
        self.hidden = spec.hidden.build(width)

    def forward(
        self, images: Float[Tensor, "B channels rows columns"], token_types: None = None
    ) -> Float[Tensor, "B L D"]:
        """Cut, project, and put the class token first."""
        patches_BND = self.project(images).flatten(2).mT
        class_B1D = self.class_token.expand(len(images), 1, -1)
        return self.last(torch.cat([class_B1D, self.first(patches_BND)], dim=1))


class PlainPatches(nn.Module):
    """``[E patch_1; ...; E patch_N]``: patches in the order of reading, and no token beside them (SigLIP).

    Beyer et al. 2022, "Better plain ViT baselines", leave the class token away. Shapes: images
    ``[B, channels, rows, columns]`` to ``[B, N, D]``.
    """

    @spec
    class Spec(ModuleSpec):
        """Rows and columns of the image that the model is made for, and of a patch; a narrower last one is left out."""

        image: tuple[int, int]
        patch: tuple[int, int]
        channels: int = 3

        @property
        def grid(self) -> PatchGrid:
            """The patches of an image of this size.

            Raises:
                UsageError: not a single patch fits into the image.
            """
            rows, columns = _patches(self.image, self.patch)
            return PatchGrid(rows=rows, columns=columns, before=0)

        @property
        def tokens(self) -> int:
            """The length of a row: every patch."""
            return self.grid.places

        @property
        def names(self) -> list[str]:
            """What the places of a row are called: each patch by its row and column."""
            return names_of(self.grid.rows, self.grid.columns)

        @property
        def input(self) -> Images:
            """What it reads."""
            return Images(self.channels, *self.image, patch=self.patch)

        def build(self, width: int) -> "PlainPatches":
            """Return the embedding."""
            return PlainPatches(self, width)

    def __init__(self, spec: Spec, width: int) -> None:
        super().__init__()
        self.input = spec.input
        self.project = nn.Conv2d(spec.channels, width, kernel_size=spec.patch, stride=spec.patch)

    def forward(
        self, images: Float[Tensor, "B channels rows columns"], token_types: None = None
    ) -> Float[Tensor, "B L D"]:
        """Cut and project."""
        return self.project(images).flatten(2).mT


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

        @property
        def names(self) -> list[str]:
            """What the places of a row are called: each patch by its row and column."""
            return names_of(*self.input.grid(*self.image))

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


def _patches(image: tuple[int, int], patch: tuple[int, int]) -> tuple[int, int]:
    """Return how many patches an image holds, below and beside each other.

    Raises:
        UsageError: not a single one.
    """
    if any(side < 1 or whole < side for whole, side in zip(image, patch, strict=True)):
        raise UsageError(f"an image of {image} holds no patch of {patch}", "choose smaller patches")
    return image[0] // patch[0], image[1] // patch[1]


def names_of(rows: int, columns: int) -> list[str]:
    """Return what patches are called: by row and column, from one."""
    return [f"{row}·{column}" for row in range(1, rows + 1) for column in range(1, columns + 1)]


def patches_of(images: Float[Tensor, "B channels rows columns"], patch: tuple[int, int]) -> Float[Tensor, "B N E"]:
    """Return the points of every patch: row by row, the channels of a point together; a last, narrower one is left."""
    rows, columns = (side // size for side, size in zip(images.shape[2:], patch, strict=True))
    whole = images[:, :, : rows * patch[0], : columns * patch[1]]
    apart = whole.unflatten(3, (columns, patch[1])).unflatten(2, (rows, patch[0]))
    return apart.permute(0, 2, 4, 3, 5, 1).flatten(3).flatten(1, 2)
