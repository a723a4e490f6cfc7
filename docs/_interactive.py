"""Pictures with a slider, ``{interactive}``: their numbers are Python's, their formulas run in the browser.

A test holds each formula of ``_static/interactive.js`` to the program at five settings.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

WORDS = ("the", "cat", "sat", "on", "a", "mat")


@dataclass(frozen=True)
class Slider:
    """What is moved, from where to where, and what is read of it.

    Attributes:
        label: before the slider.
        caption: below the picture.
        least: the smallest setting.
        most: the largest.
        step: between two settings.
        begin: where it stands at first.
        data: what the formula is given.
        labels: of rows and columns.
        shown: ``value``, or ``power`` where the slider is the logarithm of what is meant.
    """

    label: str
    caption: str
    least: float
    most: float
    step: float
    begin: float
    data: Callable[[], Mapping[str, Any]]
    labels: Mapping[str, Any]
    shown: str = "value"


def logits() -> Mapping[str, Any]:
    """Return the logits of five words."""
    return {"logits": [2.0, 1.0, 0.5, -0.5, -1.5]}


def attended() -> Mapping[str, Any]:
    """Return queries and keys of six words, and the scale of attention for their width."""
    from orrery_course.course.attending import drawn

    return {"queries": drawn(6, 4).tolist(), "keys": drawn(6, 4, seed=1).tolist(), "scale": 4**-0.5}


def places() -> Mapping[str, Any]:
    """Return how many places and channels are drawn."""
    return {"places": 16, "width": 16}


_GRID = {"rows": WORDS, "columns": WORDS}
SLIDERS = {
    "temperature": Slider(
        "temperature", "The probabilities of five words: near 0 the first has all, far above 1 all are alike.",
        0.1, 5, 0.1, 1, logits, {"rows": [], "columns": ["dog", "cat", "way", "end", "mat"]},
    ),
    "scale": Slider(
        "scale of the scores", "Each row is a word that looks: at all alike at 0, at one alone where it is large.",
        0, 8, 0.1, 0.5, attended, _GRID,
    ),
    "mask": Slider(
        "words of the future that are seen", "At 0 the mask of a language model; further to the right an answer leaks.",
        0, 5, 1, 0, attended, _GRID,
    ),
    "window": Slider(
        "window", "The last so many words are seen, the word itself among them.", 1, 6, 1, 6, attended, _GRID
    ),
    "base": Slider(
        "base", "Positions by channels: a larger base turns the hands on the right more slowly.",
        1, 6, 0.25, 4, places, {"rows": [str(place) for place in range(16)], "columns": []}, "power",
    ),
}  # fmt: skip
"""The pictures by name; ``compute`` of the script has a formula of each name."""


def figure(name: str) -> str:
    """Return a picture as HTML."""
    one = SLIDERS[name]
    given = {"kind": name, "data": one.data(), "labels": one.labels, "shown": one.shown}
    limits = f'min="{one.least}" max="{one.most}" step="{one.step}" value="{one.begin}"'
    return (
        f'<figure class="example interactive"><label>{escape(one.label)} <input type="range" {limits}/> '
        f'<output></output></label><div class="picture"></div><figcaption>{escape(one.caption)}</figcaption>'
        f'<script type="application/json">{json.dumps(given)}</script>'
        "<noscript>The picture is computed by JavaScript.</noscript></figure>"
    )


class Interactive(SphinxDirective):
    """A picture with a slider, by its name."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        """Show it."""
        name = " ".join(self.content).strip()
        if name not in SLIDERS:
            raise self.error(f"no picture {name!r}: there are {', '.join(SLIDERS)}")
        return [nodes.raw("", figure(name), format="html")]


def setup(app: Any) -> dict[str, bool]:
    """Register with Sphinx."""
    app.add_directive("interactive", Interactive)
    app.add_js_file("interactive.js")
    return {"parallel_read_safe": True}
