"""Pictures of what goes in and what comes out, ``{flow}``: a title, and a line ``name: text; text`` for each box.

They are lists that the style sheet draws as boxes: in a row, and one below the other on a phone.
"""

from html import escape

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from orrery.reports.flow import LETTERS, Box


def boxes(lines: list[str]) -> list[Box]:
    """Return the boxes of some lines.

    Raises:
        ValueError: a text is too long for a box.
    """
    made = []
    for line in lines:
        title, _, said = line.partition(": ")
        texts = [text.strip() for text in said.split(";") if text.strip()]
        for text in (title, *texts):
            if len(text) > LETTERS:
                raise ValueError(f"{text!r} is longer than the {LETTERS} letters of a box")
        made.append(Box(title.strip(), texts))
    return made


def figure(title: str, drawn: list[Box]) -> str:
    """Return boxes with their title as HTML."""
    items = "".join(
        f"<li><b>{escape(box.title)}</b>{''.join(f'<br>{escape(text)}' for text in box.lines)}</li>" for box in drawn
    )
    return f'<figure class="example flow"><figcaption>{escape(title)}</figcaption><ol>{items}</ol></figure>'


class Flow(SphinxDirective):
    """Boxes in a row, each leading to the next."""

    required_arguments = 1
    final_argument_whitespace = True
    has_content = True

    def run(self) -> list[nodes.Node]:
        """Draw them."""
        try:
            drawn = boxes([line for line in self.content if line.strip()])
        except ValueError as error:
            raise self.error(str(error)) from error
        return [nodes.raw("", figure(self.arguments[0], drawn), format="html")]


def setup(app: object) -> dict[str, bool]:
    """Register with Sphinx."""
    app.add_directive("flow", Flow)  # type: ignore[attr-defined]
    return {"parallel_read_safe": True}
