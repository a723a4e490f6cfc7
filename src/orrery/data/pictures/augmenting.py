"""Pictures turned, scaled, sheared, shifted, cropped and mirrored at random, so that a model learns what matters."""

import math
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor
from torch.nn import functional as F

LEAST = 0.25
"""The share of a box that must still be seen for the thing to count."""


@dataclass(frozen=True)
class Augmentation:
    """Each picture is read through an affine map of its own, ``p' = z R(a) S(b) diag(c) p + t``, about its middle.

    ``a`` is the angle, ``b`` the shear, ``c`` the scale of each axis and ``t`` the shift, all drawn evenly between the
    bounds; ``z^2`` is the share of the area that a crop keeps. What would come from outside is the nearest pixel of the
    border (Simard et al. 2003 have the same maps).

    Attributes:
        rotate: degrees, to both sides.
        scale: share, larger and smaller, of each axis alone.
        shear: degrees, to both sides.
        shift: share of the side, to both sides.
        flip: whether every other picture is mirrored.
        crop: share of the area that is cut away at most; what is kept lies anywhere.
    """

    rotate: float = 0.0
    scale: float = 0.0
    shear: float = 0.0
    shift: float = 0.0
    flip: bool = False
    crop: float = 0.0

    @property
    def changes(self) -> bool:
        """Whether it does anything."""
        return self.flip or any((self.rotate, self.scale, self.shear, self.shift, self.crop))

    def maps(self, count: int, rows: int, columns: int, rng: np.random.Generator) -> Float[Tensor, "B 2 3"]:
        """Return an affine map for each of so many pictures, in coordinates from -1 to 1."""
        angle, shear = (rng.uniform(-1, 1, count) * math.radians(bound) for bound in (self.rotate, self.shear))
        across, down = (1 + rng.uniform(-1, 1, count) * self.scale for _ in range(2))
        right, below = (2 * rng.uniform(-1, 1, count) * self.shift for _ in range(2))
        mirrored = np.where(rng.random(count) < 0.5, -1.0, 1.0) if self.flip else np.ones(count)
        if self.crop:
            zoom = np.sqrt(1 - rng.uniform(0, self.crop, count))
            across, down = across * zoom, down * zoom
            right, below = (way + rng.uniform(-1, 1, count) * (1 - zoom) for way in (right, below))
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
        return moved(pixels, self.maps(len(pixels), pixels.shape[-2], pixels.shape[-1], rng))


def moved(
    pixels: UInt8[Tensor, "B channels rows columns"], maps: Float[Tensor, "B 2 3"]
) -> UInt8[Tensor, "B channels rows columns"]:
    """Return pictures read through maps, a number between four pixels as its distances from them weigh them."""
    places = F.affine_grid(maps, list(pixels.shape), align_corners=False)
    found = F.grid_sample(pixels.float(), places, mode="bilinear", padding_mode="border", align_corners=False)
    return found.round().to(torch.uint8)


def moved_labels(labels: Int[Tensor, "B rows columns"], maps: Float[Tensor, "B 2 3"]) -> Int[Tensor, "B rows columns"]:
    """Return the labels of pixels read through maps: of the four pixels around a place the label that weighs most.

    The weights are those by which ``moved`` mixes colours, so that a border lies where the picture shows it.
    """
    rows, columns = labels.shape[1:]
    places = F.affine_grid(maps, [len(labels), 1, rows, columns], align_corners=False)
    x = ((places[..., 0] + 1) * columns / 2 - 0.5).clamp(0, columns - 1)
    y = ((places[..., 1] + 1) * rows / 2 - 0.5).clamp(0, rows - 1)
    left, top = (each.floor().long() for each in (x, y))
    across, down = x - left, y - top
    near = [
        ((top + below).clamp(max=rows - 1) * columns + (left + right).clamp(max=columns - 1), high * wide)
        for below, high in ((0, 1 - down), (1, down))
        for right, wide in ((0, 1 - across), (1, across))
    ]
    flat = labels.flatten(1)
    found = torch.stack([flat.gather(1, index.flatten(1)) for index, _ in near])
    between = (found != found[0]).any(0)  # elsewhere all four agree
    some, weights = found[:, between], torch.stack([weight.flatten(1)[between] for _, weight in near])
    votes = torch.stack([(weights * (some == own)).sum(0) for own in some])
    chosen = found[0].clone()
    chosen[between] = some.gather(0, votes.argmax(0, keepdim=True))[0]
    return chosen.reshape(labels.shape)


def moved_boxes(
    boxes: Float[Tensor, "B N 4"], maps: Float[Tensor, "B 2 3"]
) -> tuple[Float[Tensor, "B N 4"], Float[Tensor, "B N"]]:
    """Return where boxes lie in pictures read through maps, and which share of each can still be seen.

    A box is the middle, the width and the height as shares of the picture's sides. The new one is the smallest around
    the four corners, cut at the border.
    """
    middle, half = boxes[..., :2] * 2 - 1, boxes[..., 2:]
    signs = boxes.new_tensor([[-1, -1], [1, -1], [-1, 1], [1, 1]])
    corners = middle[:, :, None] + signs * half[:, :, None]
    back = torch.linalg.inv(maps[:, :, :2])
    found = torch.einsum("bij,bnkj->bnki", back, corners - maps[:, None, None, :, 2])
    low, high = found.amin(2), found.amax(2)
    seen_low, seen_high = low.clamp(-1, 1), high.clamp(-1, 1)
    area = (high - low).prod(-1).clamp(min=1e-12)
    share = (seen_high - seen_low).prod(-1) / area
    return torch.cat([(seen_low + seen_high) / 4 + 0.5, (seen_high - seen_low) / 2], -1), share
