"""Pictures turned, scaled, sheared, shifted and mirrored at random, so that a model learns what does not matter."""

import math
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, UInt8
from torch import Tensor
from torch.nn import functional as F


@dataclass(frozen=True)
class Augmentation:
    """Each picture is read through an affine map of its own, ``p' = R(a) S(b) diag(c) p + t``, about its middle.

    ``a`` is the angle, ``b`` the shear, ``c`` the scale of each axis and ``t`` the shift, all drawn evenly between the
    bounds. What would come from outside is the nearest pixel of the border (Simard et al. 2003 have the same maps).

    Attributes:
        rotate: degrees, to both sides.
        scale: share, larger and smaller, of each axis alone.
        shear: degrees, to both sides.
        shift: share of the side, to both sides.
        flip: whether every other picture is mirrored.
    """

    rotate: float = 0.0
    scale: float = 0.0
    shear: float = 0.0
    shift: float = 0.0
    flip: bool = False

    @property
    def changes(self) -> bool:
        """Whether it does anything."""
        return self.flip or any((self.rotate, self.scale, self.shear, self.shift))

    def maps(self, count: int, rows: int, columns: int, rng: np.random.Generator) -> Float[Tensor, "B 2 3"]:
        """Return an affine map for each of so many pictures, in coordinates from -1 to 1."""
        angle, shear = (rng.uniform(-1, 1, count) * math.radians(bound) for bound in (self.rotate, self.shear))
        across, down = (1 + rng.uniform(-1, 1, count) * self.scale for _ in range(2))
        right, below = (2 * rng.uniform(-1, 1, count) * self.shift for _ in range(2))
        mirrored = np.where(rng.random(count) < 0.5, -1.0, 1.0) if self.flip else np.ones(count)
        cos, sin, tan, ratio = np.cos(angle), np.sin(angle), np.tan(shear), rows / columns
        first = np.stack([cos * across * mirrored, (cos * tan - sin) * down * ratio, right], -1)
        second = np.stack([sin * across * mirrored / ratio, (sin * tan + cos) * down, below], -1)
        return torch.from_numpy(np.stack([first, second], 1)).float()

    def apply(
        self, pixels: UInt8[Tensor, "B channels rows columns"], rng: np.random.Generator
    ) -> UInt8[Tensor, "B channels rows columns"]:
        """Return the pictures changed; the draws come from ``rng`` alone."""
        if not self.changes:
            return pixels
        maps = self.maps(len(pixels), pixels.shape[-2], pixels.shape[-1], rng)
        places = F.affine_grid(maps, list(pixels.shape), align_corners=False)
        found = F.grid_sample(pixels.float(), places, mode="bilinear", padding_mode="border", align_corners=False)
        return found.round().to(torch.uint8)
