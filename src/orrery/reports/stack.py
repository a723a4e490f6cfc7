"""Several figures as one, the first at the top."""

from collections.abc import Sequence
from xml.etree import ElementTree

from orrery.reports.figures import svg

NAMESPACE = "http://www.w3.org/2000/svg"
TITLE = 28
"""The height of the title above the figures."""


def stacked(figures: Sequence[str], *, title: str) -> str:
    """Return SVG elements of `orrery.reports.figures` as one element, each below the one before."""
    ElementTree.register_namespace("", NAMESPACE)
    height, width, parts = TITLE, 0.0, []
    for one in figures:
        root = ElementTree.fromstring(one)
        # The size on a page is that of the whole; a style of its own would stretch the part.
        del root.attrib["style"], root.attrib["role"]
        root.set("y", str(height))
        height += int(float(root.attrib["height"])) + 12
        width = max(width, float(root.attrib["width"]))
        parts.append(ElementTree.tostring(root, encoding="unicode"))
    return svg(int(width), height, title, parts)
