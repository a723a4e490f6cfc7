"""Scenes of two to four things: with their boxes, a mask that names each pixel, and a sentence that names them."""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from orrery.data.generated import GeneratedSet, register

if TYPE_CHECKING:
    from orrery.data.generated._drawing import Drawn, Draws

NAMES = (
    "ground", "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "circle", "square",
    "triangle", "cross",
)  # fmt: skip
"""What the numbers of a mask are called."""
COUNTS = {"train": 4000, "val": 500}
SIDE = 48
"""Pixels of a scene."""
SIZES = (16, 22)
"""Pixels of the square that a thing is drawn in, from the one to below the other."""
APART = 4
"""Pixels by which the middles of two things differ from left to right at least, so that their order can be told."""
TRIES = 60
"""Places that are tried for a thing before a scene is begun again."""


@register
class Scenes(GeneratedSet):
    """Pictures of several things, with what is asked of them in detection, segmentation and captioning."""

    kind = "scenes"
    what = (
        "pictures of two to four things, 48 x 48 pixels in colour, with a sentence, boxes (COCO's x, y, width, height) "
        "and a mask whose pixels are 0 for the ground and else the number of the thing"
    )
    made_from = "nothing"
    how = (
        "the digits and shapes of `things`, no two over each other; the sentence names them from left to right; 4,000 "
        "are `train`, 500 `val`, drawn with seeds of their own"
    )
    columns = ("picture", "caption", "boxes", "mask")
    text = "caption"
    classes = NAMES

    def records(self, part: str) -> Iterator[dict[str, Any]]:
        """Yield the scenes of a part."""
        import numpy as np

        from orrery.data.generated._drawing import painted
        from orrery.data.pictures.addresses import as_address

        draws = np.random.default_rng([41, self.parts.index(part)])
        for _ in range(COUNTS[part]):
            things = _placed(int(draws.integers(2, 5)), draws)
            mask = np.zeros((SIDE, SIDE, 1), np.uint8)
            for thing in things:
                rows, columns = thing.shown.nonzero()
                mask[thing.top + rows, thing.left + columns] = NAMES.index(thing.name)
            boxes = [{"label": thing.name, "box": thing.box} for thing in things]
            yield {
                "picture": as_address(painted(things, SIDE, draws)),
                "caption": caption(things),
                "boxes": json.dumps(boxes),
                "mask": as_address(mask),
            }


def caption(things: "list[Drawn]") -> str:
    """Return the sentence that names things in their order: ``a red seven, a blue circle and a green two``."""
    named = [f"a {thing.colour} {thing.name}" for thing in things]
    return f"{', '.join(named[:-1])} and {named[-1]}"


def _placed(count: int, draws: "Draws") -> "list[Drawn]":
    """Return so many things from left to right, none over another."""
    from orrery.data.generated._drawing import COLOURS, THINGS, Drawn, drawn

    squares: list[tuple[int, int, int]] = []
    while len(squares) < count:
        square = _free(squares, int(draws.integers(*SIZES)), draws)
        squares = [] if square is None else [*squares, square]
    found = []
    for top, left, side in sorted(squares, key=lambda square: square[1] + square[2] / 2):
        name, colour = list(THINGS)[draws.integers(len(THINGS))], list(COLOURS)[draws.integers(len(COLOURS))]
        found.append(Drawn(name, colour, top, left, drawn(name, side, draws)))
    return found


def _free(squares: list[tuple[int, int, int]], side: int, draws: "Draws") -> tuple[int, int, int] | None:
    """Return a square that lies over none of the others, or nothing where no place was found."""
    for down, right in draws.random((TRIES, 2)).tolist():
        top, left = int(down * (SIDE - side + 1)), int(right * (SIDE - side + 1))
        if all(_apart((top, left, side), other) for other in squares):
            return top, left, side
    return None


def _apart(one: tuple[int, int, int], other: tuple[int, int, int]) -> bool:
    """Whether two squares lie beside each other, and the order of their middles can be told."""
    (top, left, side), (above, before, size) = one, other
    beside = top + side <= above or above + size <= top or left + side <= before or before + size <= left
    return beside and abs(left + side / 2 - before - size / 2) >= APART
