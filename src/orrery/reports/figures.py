"""Figures as SVG text: line charts, bar charts, heat and signed maps, labelled points, by the standard library alone.

They take the colour of the surrounding text and follow its light or dark scheme, keep their text selectable, and are
the same bytes for the same input. Everything from outside is escaped.
"""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from html import escape
from pathlib import Path

from orrery.errors import UsageError

Number = int | float

WIDTH, HEIGHT = 640, 360
CURVES = 464, 300
"""Pixels of a line chart: seven tenths of them, the least that a report shows, fit on a phone."""
BARS, LEAST_BAR = 380, 240
"""Where the longest bar ends, and how long it is at least: with its number it fits on a phone."""
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 24, 34, 46
# Light and dark variants of one hue each, all told apart by colour-blind readers and above 3:1 on their background.
_HUES = (
    ("#0b62a4", "#62b0f0"),
    ("#c2410c", "#f59a5e"),
    ("#0f7a5a", "#4fcfa5"),
    ("#8a3a9e", "#d594e6"),
    ("#8a6d00", "#e0c341"),
    ("#5b6470", "#aab4c0"),
)
_STYLE = (
    "<style>.of{font:12px system-ui,sans-serif;fill:currentColor}.of .t{font-size:14px;font-weight:600}"
    ".of .g{stroke:currentColor;stroke-opacity:.15}.of .a{stroke:currentColor;stroke-opacity:.6}"
    ".of .l{fill:none;stroke-width:2;stroke-linejoin:round}"
    + "".join(f".of .s{i}{{stroke:{h[0]}}}.of .f{i}{{fill:{h[0]}}}" for i, h in enumerate(_HUES))
    + "@media screen and (prefers-color-scheme:dark){"
    + "".join(f".of .s{i}{{stroke:{h[1]}}}.of .f{i}{{fill:{h[1]}}}" for i, h in enumerate(_HUES))
    + "}</style>"
)


class Figure(str):
    """An SVG element as text: a notebook draws it, a prompt shows its title, and saved it opens in a browser.

    Attributes:
        name: the title above the figure.
    """

    name: str

    def _repr_svg_(self) -> str:
        return str(self)

    def __repr__(self) -> str:
        return f"Figure({self.name!r}): .save('figure.svg') writes it for a browser"

    def save(self, path: str | Path) -> Path:
        """Write the picture into a file, and return where it lies."""
        Path(path).write_text(self, encoding="utf-8")
        return Path(path)


def line_chart(
    series: Mapping[str, Sequence[tuple[Number, Number]]],
    *,
    title: str,
    x_label: str,
    y_label: str,
    log_x: bool = False,
    log_y: bool = False,
    spreads: Mapping[str, Sequence[tuple[Number, Number, Number]]] | None = None,
    bands: Mapping[str, Sequence[tuple[Number, Number, Number]]] | None = None,
    dots: Collection[str] = (),
) -> Figure:
    """Return curves as an SVG element; curves of one hue differ in their dashes.

    Args:
        series: points (x, y) by the curve's name; a point that is not finite breaks the curve.
        title: above the figure.
        x_label: what x is, with its unit.
        y_label: what y is, with its unit.
        log_x: a logarithmic x axis.
        log_y: a logarithmic y axis.
        spreads: upright lines (x, low, high) by the curve's name, such as standard deviations.
        bands: shaded areas (x, low, high) by the curve's name, such as intervals of confidence.
        dots: names of those whose points stand by themselves, without a line through them.

    Raises:
        UsageError: no finite point at all, or one of at most zero on a logarithmic axis.
    """
    points = [point for curve in series.values() for point in curve if all(map(math.isfinite, point))]
    if not points:
        raise UsageError("a line chart needs at least one finite point", "give a series with numbers")
    ranges = [*(spreads or {}).values(), *(bands or {}).values()]
    points += [(x, y) for lines in ranges for x, low, high in lines for y in (low, high)]
    width, height = CURVES
    across = _Axis([x for x, _ in points], _LEFT, width - _RIGHT, log_x)
    upward = _Axis([y for _, y in points], height - _BOTTOM, _TOP, log_y)
    parts = [_frame(across, upward, width, x_label, y_label)]
    for number, (name, curve) in enumerate(series.items()):
        parts += [_band(band, number, across, upward) for band in ((bands or {}).get(name),) if band]
        if name in dots:
            finite = [point for point in curve if all(map(math.isfinite, point))]
            parts += [_circle(across.at(x), upward.at(y), number) for x, y in finite]
        else:
            parts += [_stretch(path, number) for path in _unbroken(curve, across, upward)]
        for x, low, high in (spreads or {}).get(name, ()):
            ends = f'y1="{px(upward.at(low))}" y2="{px(upward.at(high))}"'
            parts.append(
                f'<line class="l s{number % len(_HUES)}" x1="{px(across.at(x))}" x2="{px(across.at(x))}" {ends}/>'
            )
    legend, below = _legend(list(series), CURVES, dots)
    return svg(width, height + below, title, [*parts, legend])


def bar_chart(values: Mapping[str, Number], *, title: str, x_label: str, log_x: bool = False) -> Figure:
    """Return horizontal bars as an SVG element, one for each name, with its number beside it.

    Args:
        values: the length of each bar by its name.
        title: above the figure.
        x_label: what the numbers are, with their unit.
        log_x: a logarithmic axis, with its ticks; the bars begin at the lowest, for there is no zero.

    Raises:
        UsageError: no bar, a value that is not finite, or one of at most zero on a logarithmic axis.
    """
    if not values or not all(map(math.isfinite, values.values())):
        raise UsageError("a bar chart needs finite numbers", "leave out what has no number")
    left = 24 + 7 * min(28, max(map(len, values)))
    right = max(BARS, left + LEAST_BAR)
    axis = _Axis([*values.values()] if log_x else [0.0, *values.values()], left, right, log_x)
    zero = axis.ticks[0] if log_x else 0.0
    bottom = _TOP + 26 * len(values)
    height = bottom + (46 if log_x else 30)
    parts = [_tick(axis.at(tick), bottom, tick) for tick in (axis.ticks if log_x else ())]
    for row, (name, value) in enumerate(values.items()):
        y = _TOP + 26 * row
        start, end = sorted((axis.at(zero), axis.at(value)))
        parts.append(_text(left - 8, y + 14, short(name, 28), "end"))
        parts.append(f'<rect class="f0" x="{px(start)}" y="{y}" width="{px(end - start)}" height="18" rx="2"/>')
        parts.append(_text(end + 6, y + 14, f"{value:,.0f}" if 1e4 <= abs(value) < 1e12 else f"{value:.4g}"))
    parts.append(_text((left + right) / 2, height - 12, x_label, "middle"))
    below = (left + right) / 2 + 3.5 * len(x_label) + 12
    return svg(max(right + 80, 24 + 8 * len(title), math.ceil(below)), height, title, parts)


def heat_map(
    matrix: Sequence[Sequence[Number]],
    *,
    rows: Sequence[str],
    columns: Sequence[str],
    title: str,
    highest: Number | None = None,
) -> Figure:
    """Return a matrix as shades of one hue, as an SVG element: an attention pattern, queries down, keys across.

    Args:
        matrix: numbers of at least zero.
        rows: a label for each row.
        columns: a label for each column.
        title: above the figure.
        highest: what the full shade means; by default the greatest number.

    Raises:
        UsageError: labels that do not fit, or a number that is negative or not finite.
    """
    _check_labels(matrix, rows, columns)
    numbers = [value for row in matrix for value in row]
    if not all(math.isfinite(value) and value >= 0 for value in numbers):
        raise UsageError("a heat map shows numbers of at least zero", "take the absolute value, or leave them out")
    return _cells(matrix, highest or max(numbers) or 1.0, rows, columns, title, [])


def signed_map(
    matrix: Sequence[Sequence[Number]],
    *,
    rows: Sequence[str],
    columns: Sequence[str],
    title: str,
    largest: Number | None = None,
) -> Figure:
    """Return a matrix of signed numbers as shades of two hues around zero, blue above and orange below it.

    Args:
        matrix: finite numbers.
        rows: a label for each row.
        columns: a label for each column.
        title: above the figure.
        largest: what the full shades mean; by default the greatest absolute value.

    Raises:
        UsageError: labels that do not fit, or a number that is not finite.
    """
    _check_labels(matrix, rows, columns)
    numbers = [value for row in matrix for value in row]
    if not all(map(math.isfinite, numbers)):
        raise UsageError("a signed map shows finite numbers", "leave out what has no number")
    top = largest or max(map(abs, numbers)) or 1.0
    return _cells(matrix, top, rows, columns, title, [-top, -top / 2, 0.0, top / 2, top])


def _check_labels(matrix: Sequence[Sequence[Number]], rows: Sequence[str], columns: Sequence[str]) -> None:
    if len(matrix) != len(rows) or any(len(row) != len(columns) for row in matrix) or not matrix or not columns:
        shape = f"{len(matrix)} rows for {len(rows)} labels, {len(columns)} column labels"
        raise UsageError(f"a heat map's labels do not fit its matrix: {shape}", "give a label for each")


def _cells(
    matrix: Sequence[Sequence[Number]],
    top: Number,
    rows: Sequence[str],
    columns: Sequence[str],
    title: str,
    scale: Sequence[Number],
) -> Figure:
    """Return shaded cells with their labels, and below them what the shades of ``scale`` mean."""
    cell = max(8, min(24, 560 // max(len(rows), len(columns))))
    left, above = 12 + 7 * _longest(rows), _TOP + 8 + 7 * _longest(columns)
    parts = [_shades(row, top, left, above + cell * i, cell) for i, row in enumerate(matrix)]
    parts += [_text(left - 6, above + cell * (i + 0.5) + 4, short(name, 14), "end") for i, name in enumerate(rows)]
    parts += [_upright(left + cell * (j + 0.5) + 4, above - 6, short(name, 14)) for j, name in enumerate(columns)]
    width, height = cell * len(columns), cell * len(rows)
    parts.append(f'<rect class="a" fill="none" x="{left}" y="{above}" width="{width}" height="{height}"/>')
    below = above + height + 14
    for place, value in enumerate(scale):
        parts.append(_shades([value], top, left + 56 * place, below, 12))
        parts.append(f'<rect class="g" fill="none" x="{left + 56 * place}" y="{below}" width="12" height="12"/>')
        parts.append(_text(left + 56 * place + 16, below + 10, f"{value:.2g}"))
    wide = max(left + width + 16, 24 + 8 * len(title), left + 56 * len(scale) + 16)
    return svg(wide, above + height + (40 if scale else 16), title, parts)


def scatter(
    groups: Mapping[str, Mapping[str, tuple[Number, Number]]],
    *,
    title: str,
    x_label: str,
    y_label: str,
    log_y: bool = False,
) -> Figure:
    """Return labelled points as an SVG element, one hue for each group.

    Args:
        groups: points (x, y) by their label, by the group's name.
        title: above the figure.
        x_label: what x is.
        y_label: what y is.
        log_y: a logarithmic y axis.

    Raises:
        UsageError: no point, one that is not finite, or one of at most zero on a logarithmic axis.
    """
    points = [point for group in groups.values() for point in group.values()]
    if not points or not all(math.isfinite(number) for point in points for number in point):
        raise UsageError("a scatter needs points with finite numbers", "leave out what has no place")
    names = 44 + 7 * _longest(list(groups), 28) if len(groups) > 1 else 0  # room for the legend beside the points
    across = _Axis([x for x, _ in points], _LEFT, WIDTH - _RIGHT - names, False)
    upward = _Axis([y for _, y in points], HEIGHT - _BOTTOM, _TOP, log_y)
    parts = [_frame(across, upward, WIDTH, x_label, y_label)]
    places = [(across.at(x), upward.at(y)) for x, y in points]
    boxes = [(x - 3, y - 3, x + 3, y + 3) for x, y in places]
    named = [(number, label) for number, group in enumerate(groups.values()) for label in group]
    for (number, label), (x, y) in zip(named, places, strict=True):
        parts.append(f'<circle class="f{number % len(_HUES)}" r="3" cx="{px(x)}" cy="{px(y)}"/>')
        parts.append(_label(short(label, 20), x, y, boxes))
    legend, below = _legend(list(groups), (WIDTH, HEIGHT))
    return svg(WIDTH, HEIGHT + below, title, [*parts, legend])


class _Axis:
    """A scale from numbers to pixels, with round ticks."""

    def __init__(self, values: Iterable[Number], start: Number, end: Number, log: bool) -> None:
        low, high = min(values := list(values)), max(values)
        if log and low <= 0:
            raise UsageError(f"{low} has no place on a logarithmic axis", "leave the point out, or use a linear axis")
        self.log, self.start, self.end = log, start, end
        self.ticks = _decades(low, high) if log else _round_steps(low, high)
        self.low, self.high = (self._scaled(x) for x in (min(low, self.ticks[0]), max(high, self.ticks[-1])))

    def at(self, value: Number) -> Number:
        """Return the pixel of a value."""
        return self.start + (self._scaled(value) - self.low) / (self.high - self.low) * (self.end - self.start)

    def _scaled(self, value: Number) -> Number:
        return math.log10(value) if self.log else value


def _round_steps(low: Number, high: Number) -> list[Number]:
    """Return about five multiples of 1, 2 or 5 times a power of ten that enclose the range."""
    if low == high:
        low, high = low - max(1.0, abs(low)) / 2, high + max(1.0, abs(high)) / 2
    rough = (high - low) / 5
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * m for m in (1, 2, 5, 10) if power * m >= rough * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(i * step, 12) if step > 1e-9 else i * step for i in range(first, last + 1)]


def _decades(low: Number, high: Number) -> list[Number]:
    """Return powers of ten that enclose the range, at most eight; over few decades also 2 and 5 times them.

    A range of less than a decade's third has round steps: powers would leave most of the figure empty.
    """
    if low < high <= 2.5 * low:
        return _round_steps(low, high)
    first, last = math.floor(math.log10(low) + 1e-9), math.ceil(math.log10(high) - 1e-9)
    if last - first <= 2:
        steps = [m * 10.0**power for power in range(first, last + 1) for m in (1, 2, 5)] + [10.0 ** (last + 1)]
        start = max(i for i, step in enumerate(steps) if step <= low * (1 + 1e-9))
        end = min(i for i, step in enumerate(steps) if step >= high * (1 - 1e-9) and i > start)
        return steps[start : end + 1]
    stride = math.ceil((last - first) / 7)
    return [10.0**power for power in range(first, last + stride, stride)]


def _frame(across: _Axis, upward: _Axis, width: int, x_label: str, y_label: str) -> str:
    """Return grid, ticks and labels."""
    bottom, right = upward.start, width - _RIGHT
    parts = [_tick(across.at(tick), bottom, tick) for tick in across.ticks]
    for tick in upward.ticks:
        y = px(upward.at(tick))
        parts.append(f'<line class="g" x1="{_LEFT}" x2="{right}" y1="{y}" y2="{y}"/>')
        parts.append(_text(_LEFT - 6, upward.at(tick) + 4, _number(tick), "end"))
    parts.append(f'<path class="a" fill="none" d="M{_LEFT} {_TOP}V{px(bottom)}H{right}"/>')
    parts.append(_text((_LEFT + right) / 2, bottom + _BOTTOM - 10, x_label, "middle"))
    middle = px((_TOP + bottom) / 2)
    parts.append(f'<text transform="translate(14 {middle}) rotate(-90)" text-anchor="middle">{escaped(y_label)}</text>')
    return "".join(parts)


def _tick(x: Number, bottom: Number, value: Number) -> str:
    """Return an upright line of the grid with its number below."""
    line = f'<line class="g" x1="{px(x)}" x2="{px(x)}" y1="{_TOP}" y2="{px(bottom)}"/>'
    return line + _text(x, bottom + 16, _number(value), "middle")


def _unbroken(curve: Sequence[tuple[Number, Number]], across: _Axis, upward: _Axis) -> list[str]:
    """Return the stretches of a curve between its gaps."""
    stretches: list[list[str]] = [[]]
    for x, y in curve:
        if math.isfinite(x) and math.isfinite(y):
            stretches[-1].append(f"{px(across.at(x))},{px(upward.at(y))}")
        else:
            stretches.append([])
    return [" ".join(points) for points in stretches if points]


def _stretch(path: str, number: int) -> str:
    """Return a stretch of a curve; a point between two gaps, of which no line could be seen, has a dot."""
    dot = "" if " " in path else f'<circle class="f{number % len(_HUES)}" r="2.5" cx="{{}}" cy="{{}}"/>'
    return f'<polyline {_line(number)} points="{path}"/>' + dot.format(*path.split(","))


def _band(band: Sequence[tuple[Number, Number, Number]], number: int, across: _Axis, upward: _Axis) -> str:
    """Return the area between the low and the high ends, in a light shade of the curve's hue."""
    edge = [(x, low) for x, low, _ in band] + [(x, high) for x, _, high in reversed(band)]
    points = " ".join(f"{px(across.at(x))},{px(upward.at(y))}" for x, y in edge)
    return f'<polygon class="f{number % len(_HUES)}" fill-opacity="0.15" points="{points}"/>'


def _circle(x: Number, y: Number, number: int) -> str:
    """Return a point of a curve that has no line."""
    return f'<circle class="f{number % len(_HUES)}" r="3.5" cx="{px(x)}" cy="{px(y)}"/>'


def _line(number: int) -> str:
    """Return how the curve of a number is drawn: its hue, and dashes where the hues begin again."""
    dashes = ("", "7 4", "2 4", "9 3 2 3")[number // len(_HUES) % 4]
    return f'class="l s{number % len(_HUES)}"' + (f' stroke-dasharray="{dashes}"' if dashes else "")


def _legend(names: Sequence[str], size: tuple[int, int], dots: Collection[str] = ()) -> tuple[str, int]:
    """Return names beside their hues, in rows below the figure where no curve runs through them, and their height."""
    if len(names) < 2:
        return "", 0
    each = 44 + 7 * _longest(names, 28)
    columns = max(1, (size[0] - _LEFT - _RIGHT) // each)
    parts = []
    for number, name in enumerate(names):
        row, column = divmod(number, columns)
        x, y = _LEFT + column * each, size[1] + 12 + 18 * row
        line = f'<line {_line(number)} x1="{x}" x2="{x + 20}" y1="{y - 4}" y2="{y - 4}"/>'
        parts.append(_circle(x + 10, y - 4, number) if name in dots else line)
        parts.append(_text(x + 26, y, short(name, 28)))
    return "".join(parts), 18 * -(-len(names) // columns) + 8


def _label(text: str, x: Number, y: Number, boxes: list[tuple[Number, Number, Number, Number]]) -> str:
    """Return a point's name on the side where it covers the least of what is there, and add its box to ``boxes``."""
    width = 6.5 * len(text)
    sides = [(x + 6, "start", x + 6, y + 4), (x - 6, "end", x - 6 - width, y + 4)]
    sides += [(x, "middle", x - width / 2, y + shift) for shift in (-6, 15)]
    sides += [
        side
        for shift in (-5, 13)
        for side in ((x + 5, "start", x + 5, y + shift), (x - 5, "end", x - 5 - width, y + shift))
    ]

    def covered(side: tuple[Number, str, Number, Number]) -> Number:
        left, right, top, bottom = side[2], side[2] + width, side[3] - 10, side[3] + 2
        outside = max(0, _LEFT - left) + max(0, right - WIDTH + 4)
        shared = (
            max(0, min(right, b[2]) - max(left, b[0])) * max(0, min(bottom, b[3]) - max(top, b[1])) for b in boxes
        )
        return sum(shared) + 100 * outside

    best = min(sides, key=covered)
    boxes.append((best[2], best[3] - 10, best[2] + width, best[3] + 2))
    return _text(best[0], best[3], text, best[1])


def _shades(row: Sequence[Number], top: Number, left: int, y: int, cell: int) -> str:
    """Return one row, equal neighbours as one rectangle and zeros not at all; what is below zero in another hue."""
    levels = [round(max(-1.0, min(value / top, 1.0)) * 50) for value in row]
    parts, start = [], 0
    for column in range(1, len(levels) + 1):
        if column == len(levels) or levels[column] != levels[start]:
            if levels[start]:
                shade, x, width = f"{abs(levels[start]) / 50:g}", left + cell * start, cell * (column - start)
                hue = "f0" if levels[start] > 0 else "f1"
                size = f'width="{width}" height="{cell}" fill-opacity="{shade}"'
                parts.append(f'<rect class="{hue}" x="{x}" y="{y}" {size}/>')
            start = column
    return "".join(parts)


def svg(width: Number, height: Number, title: str, parts: Sequence[str]) -> Figure:
    """Return an SVG element of these parts, its title above them; a long title is written smaller, so that it fits."""
    name = escaped(title)
    size = 14 * min(1, (width - 24) / (8 * max(1, len(title))))
    smaller = f' style="font-size:{size:.2f}px"' if size < 14 else ""
    figure = Figure(
        f'<svg xmlns="http://www.w3.org/2000/svg" class="of" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" role="img" aria-label="{name}" style="max-width:100%;height:auto;color-scheme:light dark">'
        f'{_STYLE}<text class="t" x="12" y="20"{smaller}>{name}</text>{"".join(parts)}</svg>'
    )
    figure.name = title
    return figure


def _text(x: Number, y: Number, text: str, anchor: str = "start") -> str:
    return f'<text x="{px(x)}" y="{px(y)}" text-anchor="{anchor}" xml:space="preserve">{escaped(text)}</text>'


def _upright(x: Number, y: Number, text: str) -> str:
    return f'<text transform="translate({px(x)} {px(y)}) rotate(-90)" xml:space="preserve">{escaped(text)}</text>'


def escaped(text: str) -> str:
    """Escape a text and show what XML cannot hold or a reader cannot see."""
    visible = text.replace("\n", "\u21b5").replace("\t", "\u21e5")
    return escape("".join(c if c.isprintable() or c == " " else "\ufffd" for c in visible))


def short(text: str, most: int) -> str:
    """Return a text of at most so many letters, the last one an ellipsis where it is cut."""
    return text if len(text) <= most else text[: most - 1] + "\u2026"


def _longest(texts: Sequence[str], most: int = 14) -> int:
    return max(len(short(text, most)) for text in texts)


def _number(value: Number) -> str:
    """Return a tick's label: 0.25, 300, 20k, 5M, 2T, 1e+20."""
    if abs(value) >= 1e15:
        return f"{value:g}"
    for size, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= size:
            return f"{value / (1e3 if letter == 'k' else size):g}{letter}"
    return f"{value:g}"


def px(value: Number) -> str:
    """Return a coordinate with at most two decimals."""
    return f"{value:.2f}".rstrip("0").rstrip(".")
