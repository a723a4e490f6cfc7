"""Pictures for a report: masks in colours, boxes over a picture, several beside each other."""

import colorsys
from collections.abc import Iterable

import numpy as np
import torch
from jaxtyping import UInt8
from numpy.typing import NDArray
from torch import Tensor

GAP = 2
"""White columns between two pictures."""


def colours(count: int) -> NDArray[np.uint8]:
    """Return a colour for each of several labels, ``[count, 3]``: black for the first, the others around the circle."""
    around = [colorsys.hsv_to_rgb(number * 0.381966 % 1, 0.75, 0.95) for number in range(max(0, count - 1))]
    return (np.array([(0, 0, 0), *around])[:count] * 255).round().astype(np.uint8)


def in_colours(labels: NDArray[np.int64], count: int) -> UInt8[Tensor, "channels rows columns"]:
    """Return labels of pixels as a picture; white is what belongs to nothing."""
    table = np.concatenate([colours(count), [[255, 255, 255]]]).astype(np.uint8)
    return torch.from_numpy(table[np.where(labels < 0, count, labels)].transpose(2, 0, 1).copy())


def with_boxes(
    pixels: UInt8[Tensor, "channels rows columns"],
    boxes: Iterable[tuple[tuple[int | float, ...], tuple[int, int, int]]],
) -> UInt8[Tensor, "3 rows columns"]:
    """Return a picture with the outlines of boxes: each left, top, right and bottom in pixels, and a colour."""
    found = pixels.expand(3, -1, -1).clone()
    rows, columns = found.shape[1:]
    for (left, top, right, bottom), colour in boxes:
        x0, x1 = (min(columns - 1, max(0, round(x))) for x in (left, right - 1))
        y0, y1 = (min(rows - 1, max(0, round(y))) for y in (top, bottom - 1))
        line = torch.tensor(colour, dtype=torch.uint8)[:, None]
        found[:, y0, x0 : x1 + 1], found[:, y1, x0 : x1 + 1] = line, line
        found[:, y0 : y1 + 1, x0], found[:, y0 : y1 + 1, x1] = line, line
    return found


def beside(*pictures: UInt8[Tensor, "_ rows _"]) -> UInt8[Tensor, "3 rows columns"]:
    """Return pictures of one height beside each other, in colours."""
    parts: list[Tensor] = []
    for picture in pictures:
        gap = torch.full((3, picture.shape[1], GAP), 255, dtype=torch.uint8)
        parts += [gap, picture.expand(3, -1, -1)] if parts else [picture.expand(3, -1, -1)]
    return torch.cat(parts, 2)
