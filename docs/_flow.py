"""Pictures of what goes in and what comes out, ``{flow}``: a title, and a line ``name: text; text`` for each box."""

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from orrery.reports.flow import LETTERS, Box, flow


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
        svg = flow(drawn, [(place, place + 1) for place in range(len(drawn) - 1)], title=self.arguments[0])
        return [nodes.raw("", f'<figure class="example flow">{svg}</figure>', format="html")]


def setup(app: object) -> dict[str, bool]:
    """Register with Sphinx."""
    app.add_directive("flow", Flow)  # type: ignore[attr-defined]
    return {"parallel_read_safe": True}
