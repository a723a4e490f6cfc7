"""What an embedding reads."""

from dataclasses import dataclass
from typing import TypeAlias

from torch import Tensor

from orrery.errors import UsageError


@dataclass(frozen=True)
class Tokens:
    """Token numbers, ``[B, L]``, of a vocabulary of this size."""

    vocabulary: int

    def check_padding(self, real: Tensor | None) -> None:
        """Accept padding."""


@dataclass(frozen=True)
class Images:
    """Images, ``[B, channels, rows, columns]``."""

    channels: int
    rows: int
    columns: int

    def check_padding(self, real: Tensor | None) -> None:
        """Refuse padding, which images do not have.

        Raises:
            UsageError: there is some.
        """
        if real is not None:
            raise UsageError("images have no padding", "leave lengths and masks of the source away")

    @property
    def shape(self) -> tuple[int, int, int]:
        """The shape of one image."""
        return self.channels, self.rows, self.columns


Input: TypeAlias = Tokens | Images
