"""Batches of pictures: cut to the model's size once, augmented and scaled batch by batch."""

from collections.abc import Callable, Iterable, Mapping

import numpy as np
import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from orrery.data.batches.order import Shuffled
from orrery.data.batches.seeds import derive_seed
from orrery.data.batches.token_windows import PureSource
from orrery.data.pictures.augmenting import Augmentation, moved
from orrery.data.pictures.preparing import Preparation, fitted
from orrery.errors import UsageError

Fields = Mapping[str, Tensor]
Follow = Callable[[Fields, Float[Tensor, "B 2 3"]], Fields]
"""Returns what else a batch has as the pictures' maps move it: boxes, labels of pixels."""


class PictureBatches(PureSource):
    """Every epoch visits each picture once, in an order and with changes that depend on (seed, step) alone.

    Args:
        pixels: of all pictures, as the model's size has them.
        fields: what else a batch has, a row for each picture.
        preparation: scales the pixels.
        size: pictures of a batch.
        seed: of the run.
        augmentation: what is changed at random.
        follow: moves the fields with their pictures; by default they stay as they are.
        rows: the number of the picture of each row of the fields, where some have several; by default one each.
    """

    def __init__(
        self,
        pixels: UInt8[Tensor, "N channels rows columns"],
        fields: Fields,
        preparation: Preparation,
        size: int,
        seed: int,
        augmentation: Augmentation,
        follow: Follow = lambda fields, maps: fields,
        rows: Tensor | None = None,
    ) -> None:
        self.pixels, self.fields, self.preparation, self.follow = pixels, fields, preparation, follow
        self.size, self.seed, self.augmentation = size, seed, augmentation
        self.rows = torch.arange(len(pixels)) if rows is None else rows
        self.order = Shuffled(len(self.rows), seed)
        self.tokens_per_step, self.rows_per_epoch = size, len(self.rows)

    def batch(self, step: int) -> dict[str, Tensor]:
        """Return the batch of ``step``."""
        numbers = torch.from_numpy(self.order.items(step * self.size, (step + 1) * self.size))
        pixels, fields = self.pixels[self.rows[numbers]], {name: x[numbers] for name, x in self.fields.items()}
        if self.augmentation.changes:
            rng = np.random.default_rng(derive_seed(self.seed, "augmentation", step))
            maps = self.augmentation.maps(len(pixels), pixels.shape[-2], pixels.shape[-1], rng)
            pixels, fields = moved(pixels, maps), dict(self.follow(fields, maps))
        return {"images": self.preparation.scaled(pixels), **fields}


class PicturesInTurn(PureSource):
    """All pictures as they are, ``size`` a batch, for evaluation."""

    def __init__(
        self,
        pixels: UInt8[Tensor, "N channels rows columns"],
        fields: Fields,
        preparation: Preparation,
        size: int,
        rows: Tensor | None = None,
    ) -> None:
        self.pixels, self.fields, self.preparation, self.size = pixels, fields, preparation, size
        self.rows = torch.arange(len(pixels)) if rows is None else rows
        self.tokens_per_step, self.rows_per_epoch = size, len(self.rows)

    def __len__(self) -> int:
        return -(-len(self.rows) // self.size)

    def batch(self, step: int) -> dict[str, Tensor]:
        """Return the batch of ``step``, from 0 to below ``len(self)``."""
        if not 0 <= step < len(self):
            raise UsageError(f"batch {step} of {len(self)}", "evaluation ends after the last one")
        part = slice(step * self.size, (step + 1) * self.size)
        images = self.preparation.scaled(self.pixels[self.rows[part]])
        return {"images": images, **{name: values[part] for name, values in self.fields.items()}}


def stacked(
    pictures: Iterable[Tensor], count: int, preparation: Preparation, shape: tuple[int, int, int]
) -> UInt8[Tensor, "N channels rows columns"]:
    """Return ``count`` pictures cut to the shape that a model reads; they are decoded one after the other.

    Raises:
        UsageError: the preparation gives another size than the model reads.
    """
    found = torch.empty((count, *shape), dtype=torch.uint8)
    for number, pixels in enumerate(pictures):
        found[number] = fitted(pixels, preparation, shape)
    return found
