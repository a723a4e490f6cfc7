"""A page of one HTML file that needs nothing but a browser, put together from sections, figures and tables.

Everything from outside is escaped, nothing is fetched, and a content policy in the page forbids it.
"""

import base64
from collections.abc import Iterable, Sequence
from html import escape

from orrery.reports.style import STYLE

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def document(title: str, body: str) -> str:
    """Return a whole page around its parts; ``body`` is markup."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<link rel="icon" href="data:,">\n'
        f"<title>{visible(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n{body}\n</main>\n"
        "</body>\n</html>\n"
    )


def head(title: str, lead: str) -> str:
    """Return the top of a page: its title, and what it says in a sentence or two."""
    return f'<header>\n<h1>{visible(title)}</h1>\n<p class="lead">{visible(lead)}</p>\n</header>'


def section(title: str, body: str, name: str = "") -> str:
    """Return a part of the page; ``body`` is markup, and ``name`` that by which a link finds it."""
    anchor = f' id="{visible(name)}"' if name else ""
    return f"<section{anchor}>\n<h2>{visible(title)}</h2>\n{body}\n</section>"


def figure(svg: str, caption: str = "", kind: str = "") -> str:
    """Return an SVG with its caption, which is text, where what it draws does not say all."""
    said = f"<figcaption>{visible(caption)}</figcaption>" if caption else ""
    return f'<figure class="{kind}">{svg}{said}</figure>'


def rows_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of texts."""
    return markup_table(heads, ([visible(cell) for cell in row] for row in rows))


def markup_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table whose cells are markup; its heads are texts."""
    head = "".join(f'<th scope="col">{visible(cell)}</th>' for cell in heads) if any(heads) else ""
    body = "\n".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table>\n{f'<thead><tr>{head}</tr></thead>' if head else ''}<tbody>\n{body}\n</tbody>\n</table>"


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
