"""Live curves of a run in a notebook: its losses, its measures and its last lines, drawn again in the same place."""

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from html import escape
from time import monotonic
from typing import Any

from orrery.reports.figures import Figure, Number, line_chart
from orrery.training.pace import SHOWN, Pace, describe

EVERY = 0.5
"""Seconds between two drawings, at least; what a run says last is always drawn."""
POINTS = 400
"""Points of a curve that are drawn, at most."""
LINES = 8
"""Lines that stand below the curves; those before them open with a click."""
CURVES = 6
"""Curves of one chart, as many as there are hues."""
LOSSES = {"train/loss": "on what it learns from", "val/loss": "on what is held back"}

Display = Callable[..., Any]
"""``IPython.display.display``: with ``display_id=True`` it gives what the same place is drawn again by."""


def notebook_display() -> Display | None:
    """Return how this process draws where a notebook runs it; nothing elsewhere, as at a prompt of IPython."""
    module = sys.modules.get("IPython")  # a kernel has it; nothing is imported to find that there is none
    shell = None if module is None else module.get_ipython()
    if getattr(shell, "kernel", None) is None:
        return None
    from IPython.display import display

    drawing: Display = display
    return drawing


class LiveCurves:
    """What a run has measured so far, in one place of a notebook that is drawn again as it learns.

    Args:
        display: draws an object that has ``_repr_html_``, and returns what ``update`` draws another in its place with.
    """

    def __init__(self, display: Display) -> None:
        self._display = display
        self._handle: Any = None
        self._pace = Pace()
        self._lines: list[str] = []
        self._curves: dict[str, list[tuple[Number, Number]]] = {}
        self._where = ""
        self._drawn = -math.inf

    def line(self, text: str) -> None:
        """Keep a line, and draw it."""
        self._lines.append(text)
        self._draw()

    def progress(self, step: int, steps: int, record: Mapping[str, Any] | None) -> None:
        """Add what was measured to the curves."""
        self._pace.reached(step, steps)
        self._where = f"step {step:,}/{steps:,}{self._pace.left()}"
        if record is not None:
            self._lines.append(f"step {step:,}/{steps:,}  {describe(record)}")
            for name, value in record.items():
                if drawn(name) and isinstance(value, int | float) and math.isfinite(value):
                    self._curves.setdefault(name, []).append((step, value))
        self._draw()

    def close(self) -> None:
        """Draw the end, which stays."""
        self._draw(late=True)

    def _draw(self, *, late: bool = False) -> None:
        if not late and monotonic() - self._drawn < EVERY:
            return
        self._drawn = monotonic()
        shown = RunPicture(self._where, charts(self._curves), tuple(self._lines))
        if self._handle is None:
            self._handle = self._display(shown, display_id=True)
        else:
            self._handle.update(shown)


class RunPicture:
    """What a notebook shows of a run: where it is, its charts, and what it said."""

    def __init__(self, where: str, figures: Sequence[Figure], lines: Sequence[str]) -> None:
        self.where, self.figures, self.lines = where, figures, lines

    def __repr__(self) -> str:
        """Return the last lines, for what shows no HTML."""
        return "\n".join([self.where, *self.lines[-LINES:]]).strip()

    def _repr_html_(self) -> str:
        """Return everything; what the run said comes from files and is escaped."""
        charts = "".join(f'<div style="flex:1 1 22rem;max-width:40rem">{_fitting(one)}</div>' for one in self.figures)
        early, late = self.lines[:-LINES], self.lines[-LINES:]
        more = f"<details><summary>{len(early):,} lines before</summary>{_pre(early)}</details>" if early else ""
        return (
            f'<div class="orrery-run"><p>{escape(self.where)}</p>'
            f'<div style="display:flex;flex-wrap:wrap;gap:1rem">{charts}</div>{more}{_pre(late)}</div>'
        )


def drawn(name: str) -> bool:
    """Say whether a measure has a curve: the losses, and what is measured on what is held back."""
    return name in LOSSES or (name.startswith("val/") and name not in SHOWN)


def charts(curves: Mapping[str, Sequence[tuple[Number, Number]]]) -> list[Figure]:
    """Return the chart of the losses, and one of the other measures where there are any."""
    losses = {said: thinned(curves[name]) for name, said in LOSSES.items() if name in curves}
    others = [name for name in curves if name not in LOSSES][:CURVES]
    made = [line_chart(losses, title="Loss", x_label="step", y_label="loss")] if losses else []
    if others:
        series = {name.removeprefix("val/"): thinned(curves[name]) for name in others}
        named = next(iter(series)) if len(series) == 1 else "score"  # one curve has no legend
        made.append(line_chart(series, title="On what is held back", x_label="step", y_label=named))
    return made


def thinned(points: Sequence[tuple[Number, Number]]) -> list[tuple[Number, Number]]:
    """Return at most ``POINTS`` of a curve, evenly spread, the first and the last among them."""
    if len(points) <= POINTS:
        return list(points)
    return [points[round(place * (len(points) - 1) / (POINTS - 1))] for place in range(POINTS)]


def _fitting(figure: Figure) -> str:
    """Return a chart that becomes narrower with its room."""
    return figure.replace("<svg ", '<svg style="max-width:100%;height:auto" ', 1)


def _pre(lines: Sequence[str]) -> str:
    return f'<pre style="white-space:pre-wrap">{escape(chr(10).join(lines))}</pre>' if lines else ""
