"""Figures one below the other."""

from xml.etree import ElementTree

from orrery.reports.figures import bar_chart, line_chart
from orrery.reports.stack import NAMESPACE, stacked


def test_figures_stand_below_each_other_and_none_is_cut() -> None:
    bars = bar_chart({"a <b>": 1.0}, title="bars", x_label="x")
    lines = line_chart({"y": [(0, 1), (1, 2)]}, title="lines", x_label="x", y_label="y")
    whole = ElementTree.fromstring(stacked([bars, lines], title="both"))
    inner = whole.findall(f"{{{NAMESPACE}}}svg")
    assert [one.attrib["aria-label"] for one in inner] == ["bars", "lines"]
    (top, first), (second, last) = ((float(one.attrib["y"]), float(one.attrib["height"])) for one in inner)
    assert top > 20
    assert second >= top + first
    assert float(whole.attrib["height"]) >= second + last
    assert float(whole.attrib["width"]) == max(float(one.attrib["width"]) for one in inner)
    assert "a <b>" in [text.text for text in whole.iter(f"{{{NAMESPACE}}}text")]
    assert all("style" not in one.attrib for one in inner)
    assert "ns0" not in stacked([bars], title="one")
