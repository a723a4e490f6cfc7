"""Images as rows of vectors: cut into patches, each projected, behind a class token."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from orrery.errors import UsageError
from orrery.nn.inputs import Images
from orrery.nn.spec import ModuleSpec, spec


class PatchEmbedding(nn.Module):
    """``[class; E patch_1; ...; E patch_N]``, patches in the order of reading (Dosovitskiy et al. 2021, 3.1).

    The projection is a convolution whose steps are as long as its kernel: each patch meets the same matrix.
    Shapes: images ``[B, channels, rows, columns]`` to ``[B, 1 + N, D]``.
    """

    @spec
    class Spec(ModuleSpec):
        """Rows and columns of an image and of a patch; what a last, narrower patch would hold is left out."""

        image: tuple[int, int]
        patch: tuple[int, int]
        channels: int = 3

        @property
        def tokens(self) -> int:
            """The length of a row: every patch, and the class token.

            Raises:
                UsageError: not a single patch fits into the image.
            """
            if any(side < 1 or whole < side for whole, side in zip(self.image, self.patch, strict=True)):
                raise UsageError(f"an image of {self.image} holds no patch of {self.patch}", "choose smaller patches")
            return 1 + (self.image[0] // self.patch[0]) * (self.image[1] // self.patch[1])

        @property
        def input(self) -> Images:
            """What it reads."""
            return Images(self.channels, *self.image)

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
        self.size = (spec.channels, *spec.image)
        self.class_token = nn.Parameter(torch.zeros(width))
        self.project = nn.Conv2d(spec.channels, width, kernel_size=spec.patch, stride=spec.patch)

    def forward(
        self, images: Float[Tensor, "B channels rows columns"], token_types: None = None
    ) -> Float[Tensor, "B L D"]:
        """Cut, project, and put the class token first.

        Raises:
            UsageError: images of another size, for which there are no positions.
        """
        if tuple(images.shape[1:]) != self.size:
            raise UsageError(
                f"images of {list(images.shape[1:])}, and this model reads {list(self.size)} (channels, rows, columns)",
                "resize the images first",
            )
        patches_BND = self.project(images).flatten(2).mT
        return torch.cat([self.class_token.expand(len(images), 1, -1), patches_BND], dim=1)
