"""Things drawn from strokes and distances: ten digits and four shapes, each turned, sheared and scaled a little."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import cos, pi, sin

import numpy as np
from numpy.typing import NDArray

Points = NDArray[np.float64]
Draws = np.random.Generator


def _arc(
    x: float | int, y: float | int, across: float, down: float, start: int, stop: int
) -> list[tuple[float, float]]:
    """Return points on an ellipse about a place, from one angle to another in degrees, 0 to the right, 90 below."""
    angles = [(start + (stop - start) * step / 12) * pi / 180 for step in range(13)]
    return [(x + across * cos(angle), y + down * sin(angle)) for angle in angles]


STROKES: Mapping[str, list[tuple[float, float]]] = {
    "zero": _arc(0, 0, 0.62, 0.95, 0, 360),
    "one": [(-0.4, -0.55), (0.05, -0.95), (0.05, 0.95)],
    "two": [*_arc(0, -0.45, 0.58, 0.5, 190, 380), (-0.62, 0.95), (0.66, 0.95)],
    "three": [*_arc(-0.05, -0.48, 0.55, 0.47, 200, 450), *_arc(-0.05, 0.46, 0.62, 0.49, 270, 510)],
    "four": [(0.28, 0.95), (0.28, -0.95), (-0.68, 0.32), (0.7, 0.32)],
    "five": [(0.58, -0.93), (-0.48, -0.93), (-0.52, -0.1), *_arc(-0.05, 0.35, 0.62, 0.58, 225, 510)],
    "six": [(0.42, -0.92), *_arc(0.35, 0.3, 0.95, 1.15, 240, 180), *_arc(0, 0.42, 0.58, 0.52, 180, 540)],
    "seven": [(-0.62, -0.93), (0.64, -0.93), (-0.12, 0.95)],
    "eight": [*_arc(0, -0.47, 0.48, 0.46, 90, 450), *_arc(0, 0.47, 0.58, 0.48, -90, 270)],
    "nine": [*_arc(0, -0.42, 0.55, 0.5, 0, 360), *_arc(-0.35, -0.3, 0.9, 1.2, 0, 70)],
}
"""One line without a break for each digit, from -1 to 1 to the right and below."""


def _near(line: Points) -> Callable[[Points, float], Points]:
    """Return what measures how far inside of a line of some width points lie."""
    starts, ways = line[:-1], np.diff(line, axis=0)
    lengths = np.maximum((ways**2).sum(-1), 1e-12)

    def inside(points: Points, width: float) -> Points:
        away = points[:, None] - starts
        along = np.clip((away * ways).sum(-1) / lengths, 0, 1)
        found: Points = width - np.sqrt(((away - along[..., None] * ways) ** 2).sum(-1)).min(-1)
        return found

    return inside


def _triangle(points: Points, width: float) -> Points:
    x, y = points.T
    found: Points = np.minimum(0.75 - y, (y + 1.0) * 0.44 - np.abs(x) * 0.9)
    return found


SHAPES: Mapping[str, Callable[[Points, float], Points]] = {
    "circle": lambda points, width: 0.9 - np.sqrt((points**2).sum(-1)),
    "square": lambda points, width: 0.82 - np.abs(points).max(-1),
    "triangle": _triangle,
    "cross": lambda points, width: np.minimum(0.3 - np.abs(points).min(-1), 0.95 - np.abs(points).max(-1)),
}
"""How far inside of a shape points lie."""
THINGS: Mapping[str, Callable[[Points, float], Points]] = {
    **{name: _near(np.array(line)) for name, line in STROKES.items()},
    **SHAPES,
}
"""What can be drawn, by name: digits first."""
COLOURS: Mapping[str, tuple[int, int, int]] = {
    "red": (225, 60, 50),
    "green": (70, 190, 80),
    "blue": (80, 120, 240),
    "yellow": (235, 210, 70),
}


@dataclass(frozen=True)
class Drawn:
    """A thing in a picture: what it is, its colour, where its square lies, and how much of each pixel it covers.

    Attributes:
        name: of ``THINGS``.
        colour: of ``COLOURS``.
        top: the first row of its square.
        left: the first column.
        cover: 0 to 1, rows and columns of the square.
    """

    name: str
    colour: str
    top: int
    left: int
    cover: Points

    @property
    def shown(self) -> NDArray[np.bool_]:
        """Which pixels of the square are its own: those of which it covers half."""
        found: NDArray[np.bool_] = self.cover >= 0.5
        return found

    @property
    def box(self) -> tuple[int, int, int, int]:
        """The smallest box around its pixels: left, top, width and height, in pixels of the picture."""
        rows, columns = np.flatnonzero(self.shown.any(1)), np.flatnonzero(self.shown.any(0))
        top, left = int(rows[0]), int(columns[0])
        return self.left + left, self.top + top, int(columns[-1]) - left + 1, int(rows[-1]) - top + 1


def drawn(name: str, side: int, draws: Draws) -> Points:
    """Return how much of each pixel of a square a thing covers: turned, sheared and scaled as ``draws`` have it."""
    angle, shear = draws.uniform(-0.26, 0.26), draws.uniform(-0.2, 0.2)
    across, down = draws.uniform(0.85, 1.1, 2)
    turn = np.array([[cos(angle), -sin(angle)], [sin(angle), cos(angle)]]) @ np.array([[1, shear], [0, 1]])
    turn = turn @ np.diag([across, down]) * draws.uniform(0.62, 0.74)
    grid = (np.arange(side) + 0.5) * 2 / side - 1
    places = np.stack(np.meshgrid(grid, grid), -1).reshape(-1, 2) @ np.linalg.inv(turn).T
    inside = THINGS[name](places, draws.uniform(0.14, 0.22)).reshape(side, side)
    found: Points = np.clip(0.5 + inside * side / 3, 0, 1)
    return found


def painted(things: "list[Drawn]", side: int, draws: Draws) -> NDArray[np.uint8]:
    """Return a picture [side, side, 3] of things on a dark ground, with a little noise."""
    ground = np.full((side, side, 3), 1.0) * draws.uniform(10, 50, 3)
    for thing in things:
        here = np.s_[thing.top : thing.top + len(thing.cover), thing.left : thing.left + len(thing.cover)]
        colour = np.array(COLOURS[thing.colour]) * draws.uniform(0.85, 1.0)
        cover = thing.cover[..., None]
        ground[here] = ground[here] * (1 - cover) + colour * cover
    noisy = ground + draws.normal(0, 6, ground.shape)
    return np.clip(noisy.round(), 0, 255).astype(np.uint8)
