"""Boxes and arrows as SVG."""

from xml.etree import ElementTree

import pytest

from orrery.errors import UsageError
from orrery.reports.flow import Box, flow


def test_boxes_arrows_and_escaping() -> None:
    boxes = [Box("a <b>", ["one & two", "x" * 80]), Box("b", []), Box("c", ["3"])]
    drawing = flow(boxes, [(0, 1), (0, 2)], title="t")
    root = ElementTree.fromstring(drawing)
    tags = [element.tag.rpartition("}")[2] for element in root.iter()]
    assert tags.count("rect") == 3
    assert tags.count("polygon") == 2
    texts = ["".join(element.itertext()) for element in root.iter() if element.tag.endswith("text")]
    assert "one & two" in texts
    assert max(map(len, texts)) <= 40


def test_arrows_to_nowhere_are_refused() -> None:
    with pytest.raises(UsageError, match="a flow needs boxes"):
        flow([Box("a", [])], [(0, 1)], title="t")
    with pytest.raises(UsageError, match="a flow needs boxes"):
        flow([], [], title="t")
