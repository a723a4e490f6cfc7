"""Web pages: the text that a reader of the page sees, without marks, scripts and styles."""

import re
from html.parser import HTMLParser
from pathlib import Path

from orrery.data.files import Faults, decode, open_text
from orrery.errors import DataError

_HIDDEN = {"script", "style", "template", "noscript", "svg", "iframe", "object"}
_PARAGRAPHS = {
    *("address", "article", "aside", "blockquote", "body", "details", "dialog", "div", "dl", "fieldset", "figure"),
    *("footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "head", "header", "hr", "main", "nav", "ol", "p", "pre"),
    *("section", "table", "title", "ul"),
}
_LINES = {"br", "caption", "dd", "dt", "figcaption", "legend", "li", "option", "tr"}
_CELLS = {"td", "th"}
_BREAKS = ("", "\t", "\n", "\n\n")
"""The stronger one last."""
_SPACE = re.compile(r"[ \t\r\n\f]+")


def read_text(file: Path, faults: Faults) -> str:
    """Return the text of a page: paragraphs apart by an empty line, cells by a tab, white space folded but in `pre`.

    Raises `DataError` where the page is not UTF-8 or breaks off inside a declaration.
    """
    with open_text(file) as stream:
        content = decode(stream.read(), str(file), faults.invalid).removeprefix("\ufeff")
    page = _Page()
    try:
        page.feed(content)
        page.close()
    except AssertionError as error:  # how the library says that a declaration is broken
        message = f"{file}: not HTML: {error} at line {page.getpos()[0]}"
        raise DataError(message, "mend it, or save the page's text as .txt") from None
    return page.text()


class _Page(HTMLParser):
    """Collects the text of a page and the breaks between its parts."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._parts: list[str] = []
        self._break = ""
        self._hidden, self._kept = 0, 0

    def text(self) -> str:
        """Return what was collected, with a line end."""
        text = "".join(self._parts).rstrip(" ")
        return text + "\n" if text else ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what the tag hides or keeps, and the break before it."""
        self._hidden += tag in _HIDDEN
        self._kept += tag == "pre"
        self._between(tag)

    def handle_endtag(self, tag: str) -> None:
        """Note the end of what the tag hid or kept, and the break behind it."""
        self._hidden = max(0, self._hidden - (tag in _HIDDEN))
        self._kept = max(0, self._kept - (tag == "pre"))
        self._between(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note the break; a tag that closes itself hides nothing."""
        self._between(tag)

    def handle_data(self, data: str) -> None:
        """Add text behind the break before it."""
        if self._hidden:
            return
        if self._kept:
            text = data.removeprefix("\n") if self._break else data
        else:
            text = _SPACE.sub(" ", data)
            if self._break or not self._parts or self._parts[-1][-1].isspace():
                text = text.removeprefix(" ")
        if not text:
            return
        if self._break and self._parts:
            self._parts[-1] = self._parts[-1].removesuffix(" ")
            self._parts.append(self._break)
        self._parts.append(text)
        self._break = ""

    def _between(self, tag: str) -> None:
        space = "\n\n" if tag in _PARAGRAPHS else "\n" if tag in _LINES else "\t" if tag in _CELLS else ""
        self._break = max(self._break, space, key=_BREAKS.index)
