"""Pictures of several sizes as one batch: zeros to the right and below, and which of the pixels are real."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, UInt8
from torch import Tensor

from orrery.data.pictures.preparing import Preparation, in_channels
from orrery.errors import UsageError


class PictureBatch(NamedTuple):
    """Pictures as a model reads them; ``real`` is the ``pixel_mask`` of transformers, nothing where all are real."""

    images: Float[Tensor, "B channels rows columns"]
    real: Bool[Tensor, "B rows columns"] | None


def together(pictures: Sequence[UInt8[Tensor, "_ _ _"]], preparation: Preparation, channels: int = 3) -> PictureBatch:
    """Return pictures prepared, as one batch.

    Where the preparation pads, the zeros come behind rescaling and normalising, as in the reference.

    Raises:
        UsageError: there is none, they differ in size and nothing pads them, or one is larger than ``pad_size``.
    """
    if not pictures:
        raise UsageError("no pictures", "give at least one")
    prepared = [preparation(in_channels(picture, channels)) for picture in pictures]
    sizes = [(one.shape[-2], one.shape[-1]) for one in prepared]
    if not preparation.pads:
        if len(set(sizes)) > 1:
            raise UsageError(
                f"pictures prepared as {sizes[0]} and {next(size for size in sizes if size != sizes[0])} are no batch",
                "give one at a time, or set do_pad in preprocessor_config.json",
            )
        return PictureBatch(torch.stack(prepared), None)
    rows, columns = preparation.pad_size or (max(size[0] for size in sizes), max(size[1] for size in sizes))
    if any(size[0] > rows or size[1] > columns for size in sizes):
        raise UsageError(
            f"a picture prepared as {max(sizes)} is larger than pad_size, {rows} rows of {columns}",
            "correct pad_size or size in preprocessor_config.json",
        )
    images = prepared[0].new_zeros(len(prepared), channels, rows, columns)
    real = torch.zeros(len(prepared), rows, columns, dtype=torch.bool)
    for number, (one, (down, across)) in enumerate(zip(prepared, sizes, strict=True)):
        images[number, :, :down, :across] = one
        real[number, :down, :across] = True
    return PictureBatch(images, real)
