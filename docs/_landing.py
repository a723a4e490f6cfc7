"""The live page on the first page of the documentation, ``{live}``: the inside of the pages' own model over a text."""

from html import escape
from pathlib import Path
from typing import Any

import _examples
from docutils import nodes
from sphinx.util.docutils import SphinxDirective

MODEL, TEXT = "runs/countries", "The capital of France is Paris ."
FILE = "inside.html"
"""What the build writes beside the first page."""


def page(home: Path) -> str:
    """Return the page of one file over a text, of the model that lies in the folder of the reader."""
    import orrery

    return str(orrery.see(orrery.load(home / MODEL, say=lambda line: None), TEXT).html())


class Live(SphinxDirective):
    """The page in a frame; its content says below it what is seen."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        """Show it."""
        name = escape(" ".join(self.content))
        frame = f'<iframe class="live" src="{FILE}" title="{name}" loading="lazy"></iframe>'
        return [
            nodes.raw("", f'<figure class="example">{frame}<figcaption>{name}</figcaption></figure>', format="html")
        ]


def setup(app: Any) -> dict[str, bool]:
    """Register with Sphinx; the page is written where the others are."""
    app.add_directive("live", Live)
    app.connect("build-finished", lambda app, error: _write(app) if error is None else None)
    return {"parallel_read_safe": True}


def _write(app: Any) -> None:
    """Write the page, where pages of HTML are made and the first of them shows it."""
    source = Path(app.srcdir) / "index.md"
    if app.builder.format == "html" and source.is_file() and "{live}" in source.read_text(encoding="utf-8"):
        (Path(app.outdir) / FILE).write_text(page(_examples.prepared()), encoding="utf-8")
