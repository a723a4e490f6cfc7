import itertools
import math
import re
import subprocess
import sys
from xml.etree import ElementTree

import pytest

from orrery.errors import UsageError
from orrery.reports.figures import CURVES, bar_chart, heat_map, line_chart, scatter, signed_map
from orrery.reports.page import SMALLEST, section

NASTY = "</text><script>alert('&\"')</script>\x1b\x00"


def texts(svg):
    return [node.text for node in ElementTree.fromstring(svg).iter() if node.tag.endswith("text")]


def line(points, **options):
    return line_chart({"loss": points}, title="t", x_label="step", y_label="nats", **options)


@pytest.mark.parametrize(
    "svg",
    [
        line_chart({NASTY: [(1, 2), (3, 4)], "b": [(1, 1)]}, title=NASTY, x_label=NASTY, y_label=NASTY),
        bar_chart({NASTY: 1.5, "negative": -2.0}, title=NASTY, x_label=NASTY),
        heat_map([[0.0, 1.0], [0.5, 0.5]], rows=[NASTY, "\n"], columns=[NASTY, " "], title=NASTY),
        scatter({NASTY: {NASTY: (1, 2)}, "b": {"x": (0, 0)}}, title=NASTY, x_label=NASTY, y_label=NASTY),
    ],
    ids=["line", "bar", "heat", "scatter"],
)
def test_nothing_from_outside_becomes_markup(svg):
    root = ElementTree.fromstring(svg)
    assert not [node for node in root.iter() if "script" in node.tag]
    assert "\x1b" not in svg
    assert "\x00" not in svg


def test_axes_enclose_the_points_with_round_ticks():
    assert [t for t in texts(line([(0, 1.3), (400, 4.1)])) if t.replace(".", "").isdigit()] == [
        *("0", "100", "200", "300", "400"), *("1", "2", "3", "4", "5"),
    ]  # fmt: skip
    ticks = texts(line([(1, 0.1), (100_000, 20)], log_x=True, log_y=True))
    assert {"1", "10", "100k", "0.1", "100"} <= set(ticks)


@pytest.mark.parametrize("points", [[(1, 1)], [(0, 0), (0, 0)], [(1e-12, 1e12)], [(-5, -1e-9), (5, 1e-9)]])
def test_any_finite_points_make_a_figure(points):
    assert "NaN" not in line(points)
    ElementTree.fromstring(line(points))


@pytest.mark.parametrize("letters", [20, 59, 100])
def test_a_title_is_as_wide_as_the_figure_at_most(letters):
    drawn = line_chart({"a": [(0, 1)]}, title="t" * letters, x_label="x", y_label="y")
    size = float((re.findall(r'class="t"[^>]*font-size:([\d.]+)px', drawn) or [14])[0])
    assert size <= 14
    assert 24 + 8 / 14 * size * letters <= CURVES[0] + 1


def test_a_point_that_is_not_finite_breaks_the_curve():
    assert line([(0, 1), (1, 2), (2, float("nan")), (3, 4), (4, 5)]).count("<polyline") == 2


def test_points_without_a_line_are_dots_in_the_figure_and_in_the_legend():
    curves = {"law": [(1, 3), (2, 2)], "measured": [(1, 3), (2, float("nan")), (3, 2)]}
    svg = line_chart(curves, title="t", x_label="x", y_label="y", dots=["measured"])
    assert (svg.count("<polyline"), svg.count("<circle")) == (1, 2 + 1)


def test_a_line_chart_fits_on_a_phone():
    assert SMALLEST * CURVES[0] <= 360 - 2 * 16


def test_a_band_lies_between_its_ends_and_inside_the_figure():
    curve = {"law": [(1, 2), (2, 2)]}
    svg = line_chart(curve, title="t", x_label="x", y_label="y", bands={"law": [(1, 1, 4), (2, 0, 8)]})
    (points,) = re.findall(r'<polygon [^>]*points="([^"]*)"', svg)
    places = [tuple(map(float, place.split(","))) for place in points.split()]
    assert [x for x, _ in places] == [64, 440, 440, 64]
    low, lower, higher, high = (y for _, y in places)
    assert 254 == lower > low > high > higher == 34  # y runs downwards


def test_a_short_logarithmic_axis_has_round_steps():
    ticks = texts(line([(1, 1.4), (2, 2.2)], log_y=True))
    assert {"1.4", "1.6", "1.8", "2", "2.2"} <= set(ticks)
    assert "5" not in ticks


def test_a_heat_map_draws_equal_neighbours_once_and_zeros_not_at_all():
    svg = heat_map([[1, 1, 0], [0, 0, 0], [0.5, 1, 1]], rows=list("abc"), columns=list("xyz"), title="t")
    assert svg.count('class="f0"') == 3


def test_the_same_input_gives_the_same_bytes():
    assert line([(0, 1), (1, 2)]) == line([(0, 1), (1, 2)])


@pytest.mark.parametrize(
    "make",
    [
        lambda: line([]),
        lambda: line([(1, float("inf"))]),
        lambda: line([(0, 1)], log_x=True),
        lambda: bar_chart({}, title="t", x_label="x"),
        lambda: heat_map([[1.0]], rows=["a", "b"], columns=["c"], title="t"),
        lambda: heat_map([[-1.0]], rows=["a"], columns=["c"], title="t"),
    ],
)
def test_what_cannot_be_drawn_is_refused(make):
    with pytest.raises(UsageError):
        make()


def test_bars_without_a_number_are_refused_by_what_they_need():
    for values in ({}, {"a": float("inf")}, {"a": 1.0, "b": float("nan")}):
        with pytest.raises(UsageError, match="needs finite numbers"):
            bar_chart(values, title="t", x_label="x")


def test_a_part_of_a_page_has_a_place_only_where_it_is_named():
    assert section("T", "b") == "<section>\n<h2>T</h2>\nb\n</section>"
    assert section("T", "b", "at") == '<section id="at">\n<h2>T</h2>\nb\n</section>'


def test_it_needs_the_standard_library_alone():
    program = "import sys, orrery.reports.figures; assert not {'torch', 'numpy'} & set(sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def places(svg):
    return {node.text: float(node.get("x")) for node in ElementTree.fromstring(svg).iter() if node.tag.endswith("text")
            and node.get("x")}  # fmt: skip


def test_names_of_a_crowd_of_points_do_not_stand_over_each_other():
    crowd = {"GPT-3": (263, -132), "Gopher": (336, -121), "LaMDA": (340, -138), "Chinchilla": (347, -155)}
    crowd |= {"PaLM": (351, -105), "BLOOM": (378, -132), "LLaMA 65B": (389, -156)}
    svg = scatter({"all": {**crowd, "low": (70, -310), "high": (620, -35)}}, title="t", x_label="x", y_label="y")
    texts = re.findall(r'<text x="([^"]+)" y="([^"]+)" text-anchor="(\w+)"[^>]*>([^<]+)<', str(svg))
    boxes = []
    for x, y, anchor, text in texts:
        if text in crowd:
            width = 6.5 * len(text)
            left = float(x) - {"start": 0, "middle": width / 2, "end": width}[anchor]
            boxes.append((left, float(y) - 10, left + width, float(y) + 2))
    assert len(boxes) == len(crowd)
    for one, other in itertools.combinations(boxes, 2):
        assert one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]


def test_a_scatter_names_every_point_and_keeps_names_apart():
    groups = {"one": {"a": (0, 0), "b": (1, 1)}, "two": {"c": (0.5, 0.01)}}
    svg = scatter(groups, title="t", x_label="x", y_label="y")
    assert {"a", "b", "c", "one", "two"} <= set(texts(svg))
    circles = [node for node in ElementTree.fromstring(svg).iter() if node.tag.endswith("circle")]
    assert [node.get("class") for node in circles] == ["f0", "f0", "f1"]
    close = scatter({"one": {"first": (0, 0), "second": (0.02, 0)}}, title="t", x_label="x", y_label="y")
    centres = places(close)
    assert abs(centres["first"] - centres["second"]) > 10  # one on each side
    wide = scatter({"one": {"a" * 40: (1, 0), "left": (0, 0)}}, title="t", x_label="x", y_label="y")
    node = next(n for n in ElementTree.fromstring(wide).iter() if (n.text or "").startswith("aaa"))
    assert node.get("text-anchor") == "end", node.attrib  # to the right it would leave the figure
    with pytest.raises(UsageError, match="finite"):
        scatter({"one": {"a": (0, float("nan"))}}, title="t", x_label="x", y_label="y")
    with pytest.raises(UsageError, match="finite"):
        scatter({}, title="t", x_label="x", y_label="y")


def test_a_signed_map_tells_below_from_above_and_says_what_the_shades_mean():
    svg = signed_map([[1.0, 1.0, 0.0], [-2.0, 0.5, -2.0]], rows=["a", "b"], columns=list("xyz"), title="t")
    shades = re.findall(
        r'<rect class="(f\d)" x="(\d+)" y="(\d+)" width="(\d+)" height="\d+" fill-opacity="([\d.]+)"', svg
    )
    matrix = [(hue, int(width), float(shade)) for hue, _, _, width, shade in shades[:4]]
    assert matrix == [("f0", 48, 0.5), ("f1", 24, 1.0), ("f0", 24, 0.24), ("f1", 24, 1.0)]
    scale = [(hue, float(shade)) for hue, _, _, _, shade in shades[4:]]
    assert scale == [("f1", 1.0), ("f1", 0.5), ("f0", 0.5), ("f0", 1.0)]  # zero has no shade
    assert [text for text in texts(svg) if text in ("-2", "-1", "0", "1", "2")] == ["-2", "-1", "0", "1", "2"]
    assert signed_map([[5.0]], rows=["a"], columns=["x"], title="t", largest=10.0).count('fill-opacity="0.5"') == 3


def test_a_signed_map_refuses_what_it_cannot_show():
    with pytest.raises(UsageError, match="labels"):
        signed_map([[1.0]], rows=["a"], columns=["x", "y"], title="t")
    with pytest.raises(UsageError, match="finite"):
        signed_map([[float("nan")]], rows=["a"], columns=["x"], title="t")


def test_logarithmic_bars_are_as_long_as_logarithms_and_have_ticks():
    svg = bar_chart({"a": 10, "b": 1000, "c": 25_000}, title="t", x_label="x", log_x=True)
    widths = [float(node.get("width")) for node in ElementTree.fromstring(svg).iter() if node.get("class") == "f0"]
    assert widths[0] == 0  # the bars begin at the lowest tick, here 10
    assert widths[2] / widths[1] == pytest.approx(math.log10(2500) / 2, rel=1e-3)
    assert {"10", "100", "1000", "10k", "100k", "25,000"} <= set(texts(svg))
    with pytest.raises(UsageError, match="no place on a logarithmic axis"):
        bar_chart({"a": 0}, title="t", x_label="x", log_x=True)


def test_points_stand_at_the_height_of_their_logarithms():
    svg = scatter(
        {"g": {"a": (1, 1e9), "b": (2, 1e10), "c": (3, 1e13)}}, title="t", x_label="x", y_label="y", log_y=True
    )
    heights = [float(node.get("cy")) for node in ElementTree.fromstring(svg).iter() if node.tag.endswith("circle")]
    assert (heights[0] - heights[2]) / (heights[0] - heights[1]) == pytest.approx(4, rel=1e-3)
    assert {"1G", "10T"} <= set(texts(svg))
    with pytest.raises(UsageError, match="no place on a logarithmic axis"):
        scatter({"g": {"a": (1, -1)}}, title="t", x_label="x", y_label="y", log_y=True)


def test_a_figure_is_drawn_by_a_notebook_named_at_a_prompt_and_saved_as_a_file(tmp_path):
    figure = bar_chart({"a": 1.0}, title="One & two", x_label="x")
    assert figure._repr_svg_() == str(figure)
    assert repr(figure) == "Figure('One & two'): .save('figure.svg') writes it for a browser"
    assert figure.save(tmp_path / "bars.svg").read_text(encoding="utf-8") == figure
    assert ElementTree.parse(tmp_path / "bars.svg").getroot().get("aria-label") == "One & two"
