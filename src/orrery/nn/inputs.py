"""What an embedding reads."""

from dataclasses import dataclass
from typing import TypeAlias

from torch import Tensor

from orrery.errors import UsageError
from orrery.nn.positions.scheme import Grid


@dataclass(frozen=True)
class Tokens:
    """Token numbers, ``[B, L]``, of a vocabulary of this size."""

    vocabulary: int

    def check_padding(self, real: Tensor | None) -> None:
        """Accept padding."""

    def grid_of(self, given: Tensor) -> None:
        """Return nothing: tokens stand in a row."""


@dataclass(frozen=True)
class Images:
    """Images, ``[B, channels, rows, columns]``, of this size where nothing else says it.

    ``patch`` is what is cut, ``stride`` how far apart two begin (by default side by side), ``padding`` the points that
    are added at each border.
    """

    channels: int
    rows: int
    columns: int
    patch: Grid = (1, 1)
    stride: Grid | None = None
    padding: Grid = (0, 0)

    def check_padding(self, real: Tensor | None) -> None:
        """Refuse padding, which images do not have.

        Raises:
            UsageError: there is some.
        """
        if real is not None:
            raise UsageError("images have no padding", "leave lengths and masks of the source away")

    def grid_of(self, given: Tensor) -> Grid:
        """Return how many patches images hold; what a last, narrower patch would hold is left out.

        Raises:
            UsageError: they have other channels, or not a single patch fits into them.
        """
        channels, rows, columns = given.shape[1:]
        grid = self.grid(rows, columns)
        if channels != self.channels or min(grid) < 1:
            raise UsageError(
                f"images of {list(given.shape[1:])}, and this model reads {list(self.shape)} (channels, rows, columns)",
                f"give {self.channels} channels and a patch of {self.patch[0]} by {self.patch[1]} points at least",
            )
        return grid

    def grid(self, rows: int, columns: int) -> Grid:
        """Return the patches of a picture of a size: below, and beside each other."""
        stride = self.patch if self.stride is None else self.stride
        sides = zip((rows, columns), self.patch, stride, self.padding, strict=True)
        down, across = ((side + 2 * border - patch) // step + 1 for side, patch, step, border in sides)
        return down, across

    @property
    def shape(self) -> tuple[int, int, int]:
        """The shape of one image."""
        return self.channels, self.rows, self.columns


Input: TypeAlias = Tokens | Images
