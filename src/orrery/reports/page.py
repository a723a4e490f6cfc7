"""A page of one HTML file that needs nothing but a browser, put together from sections, figures and tables.

Everything from outside is escaped, nothing is fetched, and a content policy in the page forbids it.
"""

import base64
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from orrery.reports.making import Making
from orrery.reports.style import STYLE

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
MAKING = "How this was made"
WRAPPED = 3
"""Columns that a table may have to be as wide as a phone, with its texts wrapped; one of more moves sideways."""
SMALLEST = 0.7
"""The part of its size to which a figure is made smaller at most: below it, a reader moves it sideways."""


@dataclass(frozen=True)
class Heading:
    """The top of a page.

    Attributes:
        kind: which report it is, such as "comparison".
        title: what it is about.
        about: model and data, a few words each.
        lead: what was found, in a sentence or two.
    """

    kind: str
    title: str
    about: Sequence[str]
    lead: str


def document(heading: Heading, parts: Iterable[str], making: Making) -> str:
    """Return a whole page: its heading, its parts, which are markup, and at the end how it was made."""
    body = "\n".join([_head(heading, making), *(part for part in parts if part), _making(making)])
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<link rel="icon" href="data:,">\n'
        f"<title>{visible(heading.title)} \u00b7 Orrery</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n"
        f"{body}\n</main>\n</body>\n</html>\n"
    )


def _head(heading: Heading, making: Making) -> str:
    """Return the top of a page: which report it is, its title, model and data, the day, the version, what was found."""
    about = "".join(f"<li>{visible(each)}</li>" for each in heading.about if each)
    name, number = making.versions[0]
    facts = f'{about}<li><time datetime="{visible(making.day)}">{visible(making.day)}</time></li>'
    return (
        f'<header>\n<p class="kind"><b>Orrery</b> {visible(heading.kind)}</p>\n<h1>{visible(heading.title)}</h1>\n'
        f'<ul class="about">{facts}<li>{visible(f"{name} {number}")}</li></ul>\n'
        f'<p class="lead">{visible(heading.lead)}</p>\n</header>'
    )


def _making(making: Making) -> str:
    """Return the last part of a page."""
    versions = ", ".join(f"{name} {number}" for name, number in making.versions)
    said = f"<p>{visible(f'{making.day}, with {versions}.')}</p>"
    return section(MAKING, f"<p>{visible(making.lead)}</p>\n<pre>{visible(making.words)}</pre>\n{said}", "making")


def section(title: str, body: str, name: str = "") -> str:
    """Return a part of the page; ``body`` is markup, and ``name`` that by which a link finds it."""
    anchor = f' id="{visible(name)}"' if name else ""
    return f"<section{anchor}>\n<h2>{visible(title)}</h2>\n{body}\n</section>"


def figure(svg: str, caption: str = "", kind: str = "") -> str:
    """Return an SVG with its caption, which is text, where what it draws does not say all."""
    said = f"<figcaption>{visible(caption)}</figcaption>" if caption else ""
    wide = re.search(r'viewBox="0 0 ([\d.]+) ', svg)
    least = f' style="--least:{SMALLEST * float(wide[1]):.0f}px"' if wide else ""
    return f'<figure class="{kind}"{least}><div class="wide" tabindex="0">{svg}</div>{said}</figure>'


def rows_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of texts."""
    return markup_table(heads, ([visible(cell) for cell in row] for row in rows))


def markup_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table whose cells are markup; its heads are texts. Where it is too wide, it alone moves sideways."""
    head = "".join(f'<th scope="col">{visible(cell)}</th>' for cell in heads) if any(heads) else ""
    body = "\n".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    if not head:
        return f'<table class="facts">\n<tbody>\n{body}\n</tbody>\n</table>'
    many = ' class="many"' if len(heads) > WRAPPED else ""
    table = f"<table{many}>\n<thead><tr>{head}</tr></thead><tbody>\n{body}\n</tbody>\n</table>"
    return f'<div class="wide" tabindex="0">{table}</div>'


def picture(png: bytes, name: str, width: int) -> str:
    """Return a picture inside the page, so many points wide; small ones show their pixels. ``name`` says what it is."""
    content = base64.b64encode(png).decode()
    said = visible(name)
    return (
        f'<img src="data:image/png;base64,{content}" alt="{said}" title="{said}" width="{width}" '
        'style="image-rendering:pixelated">'
    )


def visible(text: str) -> str:
    """Return a text escaped, with what HTML cannot hold or a reader cannot see replaced."""
    return escape("".join(c if c.isprintable() or c in "\n\t" else "\ufffd" for c in text))
