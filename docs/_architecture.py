"""A drawing of the layers, from the import contract in ``pyproject.toml`` and what each package says of itself."""

import ast
import re
import tomllib
from html import escape
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src/orrery"
_WIDTH, _NAMES, _LINE, _LONGEST = 840, 150, 19, 104


def contract(project: str) -> list[str]:
    """Return the layers of the import contract, highest first, from the text of ``pyproject.toml``."""
    contracts = tomllib.loads(project)["tool"]["importlinter"]["contracts"]
    rows_of_layers: list[str] = next(one["layers"] for one in contracts if one["type"] == "layers")
    return rows_of_layers


def layers(project: str) -> list[list[str]]:
    """Return the packages of each layer that exist, highest first."""
    rows_of_layers = contract(project)
    rows = [re.findall(r"\(?(\w+)\)?", layer) for layer in rows_of_layers]
    present = {path.stem for path in SOURCE.iterdir()}
    kept = [[name for name in row if name in present and not name.startswith("__")] for row in rows]
    return [row for row in kept if row]


def neighbours(project: str) -> list[str]:
    """Return the groups of one layer that may import each other; the contract joins them with a colon."""
    return [layer.replace(" : ", ", ") for layer in contract(project) if ":" in layer]


def purposes() -> dict[str, str]:
    """Return what each package and each module beside them is for: the beginning of its docstring."""
    places = [(path.parent.name, path) for path in SOURCE.glob("*/__init__.py")]
    places += [(path.stem, path) for path in SOURCE.glob("[!_]*.py")]
    said = {name: ast.get_docstring(ast.parse(path.read_text("utf-8"))) or "" for name, path in places}
    return {name: re.split(r"; |\n", text)[0].rstrip(".").replace("`", "") for name, text in said.items() if text}


def drawing() -> str:
    """Return the house as an SVG element: a frame for each layer, a line for each package."""
    rows, known = layers((ROOT / "pyproject.toml").read_text("utf-8")), purposes()
    if missing := [name for row in rows for name in row if name not in known]:
        raise ValueError(f"these packages do not say what they are for: {', '.join(missing)}")
    if long := [name for row in rows for name in row if len(known[name]) > _LONGEST]:
        raise ValueError(f"what these packages are for is told in over {_LONGEST} characters: {', '.join(long)}")
    parts, y = [], 10
    for row in rows:
        height = _LINE * len(row) + 10
        parts.append(
            f'<rect x="40" y="{y}" width="{_WIDTH - 50}" height="{height}" rx="4" fill="none" '
            'stroke="currentColor" stroke-opacity=".45"/>'
        )
        for number, name in enumerate(row):
            line = y + 19 + _LINE * number
            parts.append(f'<text x="52" y="{line}" font-weight="600">{escape(name)}</text>')
            parts.append(f'<text x="{52 + _NAMES}" y="{line}">{escape(known[name])}</text>')
        y += height + 6
    arrow = f'<path d="M22 14V{y - 14}m-5-9l5 9l5-9" fill="none" stroke="currentColor" stroke-width="1.5"/>'
    middle = y / 2
    label = f'<text transform="translate(14 {middle}) rotate(-90)" text-anchor="middle">may import</text>'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {y}" width="{_WIDTH}" height="{y}" role="img" '
        'aria-label="The layers of Orrery, highest first" style="max-width:100%;height:auto;font:12px system-ui,'
        f'sans-serif;fill:currentColor">{arrow}{label}{"".join(parts)}</svg>'
    )


class Layers(SphinxDirective):
    """The drawing."""

    def run(self) -> list[nodes.Node]:
        """Draw it from the files as they are."""
        for path in (ROOT / "pyproject.toml", *SOURCE.glob("*/__init__.py"), *SOURCE.glob("*.py")):
            self.env.note_dependency(str(path))
        free = neighbours((ROOT / "pyproject.toml").read_text("utf-8"))
        below = f"Packages of one frame do not import each other, except: {'; '.join(free)}."
        figure = f'<figure class="example wide">{drawing()}<figcaption>{below}</figcaption></figure>'
        return [nodes.raw("", figure, format="html")]


def setup(app: Any) -> dict[str, bool]:
    """Register with Sphinx."""
    app.add_directive("layers", Layers)
    return {"parallel_read_safe": True}
