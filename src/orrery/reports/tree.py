"""A tree of tokens as an SVG picture: from left to right, what was kept in colour, what was dropped in grey."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from orrery.errors import UsageError
from orrery.reports.figures import Number, escaped, px, short, svg

Branch = Mapping[str, Any]
"""A node: its ``text``, ``total``, ``fate``, ``ways`` and ``children``."""

ROW, TOP, LETTER, GAP = 22, 44, 7, 34
"""Pixels of a leaf, above the tree, of a letter, and of an edge."""
LONGEST = 24
"""Letters of a text that are shown."""
_STYLE = (
    "<style>.tr path{fill:none;stroke-width:1.8}.tr .k{stroke:#0b62a4}.tr .p{stroke:currentColor;stroke-opacity:.35;"
    "stroke-dasharray:3 3}.tr .d{fill-opacity:.6}.tr .b{font-weight:600}"
    "@media screen and (prefers-color-scheme:dark){.tr .k{stroke:#62b0f0}}</style>"
)


def tree_picture(text: str, branches: Sequence[Branch], *, title: str) -> str:
    """Return a decoding tree as an SVG element: each token with the cost of the way to it, in nats.

    Args:
        text: what stands before the tree.
        branches: the tokens behind it.
        title: above the picture.

    Raises:
        UsageError: there is no branch.
    """
    if not branches:
        raise UsageError("a tree without a branch cannot be drawn", "ask for a token at least")
    shown = short(text, LONGEST)
    picture = _Picture(_columns(12 + LETTER * len(shown), branches))
    middle = picture.below(branches, 0)
    picture.word(12, middle, shown, "b")
    width = max(picture.columns[-1] + 12, 24 + 8 * len(title))
    return svg(width, TOP + picture.leaves * ROW + 12, title, [_STYLE, '<g class="tr">', *picture.parts, "</g>"])


@dataclass
class _Picture:
    """The parts of a picture while it is drawn.

    Attributes:
        columns: where the edges of each depth begin.
        parts: what is drawn.
        leaves: how many rows are taken.
    """

    columns: list[int]
    parts: list[str] = field(default_factory=list)
    leaves: int = 0

    def below(self, branches: Sequence[Branch], depth: int) -> float:
        """Draw what follows a node, and return the node's own height: the middle of them."""
        begin = self.columns[depth] + 6
        heights = [self._branch(branch, depth) for branch in branches]
        middle = (heights[0] + heights[-1]) / 2
        for branch, height in zip(branches, heights, strict=True):
            kind, end, bend = "p" if branch["fate"] == "pruned" else "k", begin + GAP - 12, begin + (GAP - 12) / 2
            places = (begin, middle, bend, middle, bend, height, end, height)
            x0, y0, *rest = map(px, places)
            self.parts.append(f'<path class="{kind}" d="M{x0} {y0}C{" ".join(rest)}"/>')
        return middle

    def _branch(self, branch: Branch, depth: int) -> float:
        if branch["children"]:
            height = self.below(branch["children"], depth + 1)
        else:
            height = TOP + (self.leaves + 0.5) * ROW
            self.leaves += 1
        kind = "d" if branch["fate"] == "pruned" else "b" if branch["ways"] else ""
        self.word(self.columns[depth] + GAP, height, _label(branch), kind)
        return height

    def word(self, x: Number, y: Number, text: str, kind: str) -> None:
        """Write a text, its middle at this height."""
        where = f'x="{px(x)}" y="{px(y + 4)}"'
        self.parts.append(f'<text class="{kind}" {where} xml:space="preserve">{escaped(text)}</text>')


def _label(branch: Branch) -> str:
    ways = f"  {', '.join(branch['ways'])}" if branch["ways"] and not branch["children"] else ""
    return f"{short(branch['text'], LONGEST)}  {branch['total']:.2f}{ways}"


def _columns(begin: int, branches: Sequence[Branch]) -> list[int]:
    """Return where each depth's edges begin: behind the longest label before them."""
    starts = [begin]
    while branches:
        starts.append(starts[-1] + GAP + LETTER * max(len(_label(branch)) for branch in branches))
        branches = [child for branch in branches for child in branch["children"]]
    return starts
