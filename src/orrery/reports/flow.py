"""Boxes with lines of text, from left to right, and what leads from one to another, as SVG."""

from collections.abc import Sequence
from dataclasses import dataclass

from orrery.errors import UsageError
from orrery.reports.figures import escaped, px, short, svg

BOX, GAP, LINE, MARGIN, TOP = 220, 48, 18, 16, 44
LETTERS = 32
"""Characters of a line that fit into a box."""


@dataclass(frozen=True)
class Box:
    """A box: its heading, and the lines below it."""

    title: str
    lines: Sequence[str]


def flow(boxes: Sequence[Box], arrows: Sequence[tuple[int, int]], *, title: str) -> str:
    """Return boxes in a row as an SVG element.

    Args:
        boxes: from left to right.
        arrows: from one box to another, by their numbers; those over a box between run above it.
        title: above the figure.

    Raises:
        UsageError: no box, or an arrow to one that is not there.
    """
    if not boxes or any(not 0 <= end < len(boxes) for arrow in arrows for end in arrow):
        raise UsageError("a flow needs boxes, and arrows between those that are there", "number boxes from 0")
    over = any(abs(one - other) > 1 for one, other in arrows)
    top = TOP + (28 if over else 0)
    height = 34 + LINE * max(len(box.lines) for box in boxes)
    parts = [_box(box, MARGIN + (BOX + GAP) * number, top, height) for number, box in enumerate(boxes)]
    parts += [_arrow(one, other, top, height) for one, other in arrows]
    width = 2 * MARGIN + (BOX + GAP) * len(boxes) - GAP
    return svg(max(width, 24 + 8 * len(title)), top + height + MARGIN, title, parts)


def _box(box: Box, x: int, y: int, height: int) -> str:
    """Return a frame, its heading and its lines."""
    lines = [f'<rect class="a" fill="none" rx="6" x="{x}" y="{y}" width="{BOX}" height="{height}"/>']
    lines.append(f'<text class="t" x="{x + 12}" y="{y + 22}">{escaped(short(box.title, LETTERS - 6))}</text>')
    for number, text in enumerate(box.lines):
        lines.append(f'<text x="{x + 12}" y="{y + 44 + LINE * number}">{escaped(short(text, LETTERS))}</text>')
    return "".join(lines)


def _arrow(one: int, other: int, top: int, height: int) -> str:
    """Return a line from box to box with its head: straight to the next, above the boxes between to another."""
    left, right = (MARGIN + (BOX + GAP) * number for number in (one, other))
    if other == one + 1:
        y = top + height / 2
        return _line(f"M{px(left + BOX)} {px(y)}H{px(right - 7)}") + _head(right, y, (-8, -4), (-8, 4))
    start, end, above = left + BOX / 2, right + BOX / 2, top - 16
    way = f"M{px(start)} {px(top)}V{px(above)}H{px(end)}V{px(top - 7)}"
    return _line(way) + _head(end, top, (-4, -8), (4, -8))


def _line(way: str) -> str:
    return f'<path class="l s0" d="{way}"/>'


def _head(x: int | float, y: int | float, *others: tuple[int, int]) -> str:
    points = " ".join(f"{px(x + dx)},{px(y + dy)}" for dx, dy in ((0, 0), *others))
    return f'<polygon class="f0" points="{points}"/>'
