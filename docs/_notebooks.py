"""The pages of the course as notebooks with outputs: ``python docs/_notebooks.py FOLDER`` runs and writes them."""

import hashlib
import json
import re
import shlex
import sys
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent
sys.path.append(str(DOCS))

import _examples  # noqa: E402

from orrery_course.course import Deck, decks  # noqa: E402

Cell = dict[str, Any]
_BLOCK = re.compile(r"^```\{(?P<kind>\w+)\}\n(?P<body>.*?)\n```$", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"^<!-- .*? -->\n", re.MULTILINE)
PYTHON = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}


def notebook(text: str, page: _examples.Page, deck: Deck | None = None) -> dict[str, Any]:
    """Return a page as a notebook in nbformat 4.5: its text, its code and what that printed and drew when it ran here.

    With a deck it ends with an item to be changed. A warning is an error.
    """
    cells = list(_cells(_COMMENT.sub("", text), page))
    if deck is not None:
        (item,) = (one for one in deck.items if one.name == deck.change)
        cells += [_text(f"## Change this and look\n\n{deck.to_see}"), _code(item.source, page)]
    for place, cell in enumerate(cells):
        cell["id"] = hashlib.sha256(f"{place} {cell['source']}".encode()).hexdigest()[:12]
        if cell["cell_type"] == "code":
            cell["execution_count"] = 1 + sum(one["cell_type"] == "code" for one in cells[:place])
    return {"cells": cells, "metadata": PYTHON, "nbformat": 4, "nbformat_minor": 5}


def _cells(text: str, page: _examples.Page) -> Iterator[Cell]:
    """Yield what stands between the blocks of a page, and the blocks."""
    end = 0
    for match in _BLOCK.finditer(text):
        if before := text[end : match.start()].strip():
            yield _text(before)
        end = match.end()
        yield from BLOCKS[match["kind"]](match["body"], page)
    if after := text[end:].strip():
        yield _text(after)


def _text(source: str) -> Cell:
    return {"cell_type": "markdown", "metadata": {}, "source": source}


def _code(source: str, page: _examples.Page) -> Cell:
    """Run Python, and return it with what it printed and drew."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        printed, picture = page.run(source)
    outputs: list[Mapping[str, Any]] = [{"output_type": "stream", "name": "stdout", "text": printed}] if printed else []
    if picture:
        outputs.append({"output_type": "display_data", "metadata": {}, "data": {"image/svg+xml": picture}})
        source = f"from IPython.display import SVG\n\n{_drawn(source)}"
    return {"cell_type": "code", "metadata": {}, "source": source, "outputs": outputs}


def _drawn(source: str) -> str:
    """Return code whose last expression, a picture as text, is shown as a picture."""
    import ast

    last = ast.parse(source).body[-1]
    lines = source.splitlines()
    call = "\n".join(lines[last.lineno - 1 :])
    return "\n".join([*lines[: last.lineno - 1], f"SVG({call})"])


def _commands(body: str, page: _examples.Page) -> Iterator[Cell]:
    for line in _examples.joined(body):
        printed = page.command(line)
        outputs = [{"output_type": "stream", "name": "stdout", "text": printed}] if printed else []
        yield {"cell_type": "code", "metadata": {}, "source": f"!{shlex.join(shlex.split(line))}", "outputs": outputs}


def _questions(body: str, page: _examples.Page) -> Iterator[Cell]:
    """Yield each question with its options, and its answer behind a click."""
    from orrery_course.quiz import chosen, lettered, shown

    for entry in chosen(body.split()):
        found = entry.question
        options = "\n".join(f"- {option}" for option in lettered(found).values())
        answer = f"<details><summary>Answer</summary>{shown(found)}. {found.why}</details>"
        yield _text("\n\n".join(filter(None, (f"**{entry.name}** ({entry.slide})", found.asks, options, answer))))


BLOCKS = {
    "example": lambda body, page: iter([_code(body, page)]),
    "command": _commands,
    "question": _questions,
    "interactive": lambda body, page: iter(()),  # a notebook has code to change instead
}
"""What a block of a page becomes."""


def main(folder: Path) -> None:
    """Write a notebook of each deck."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, deck in decks().items():
        own = _examples.ALONE / "notebooks" / name
        own.mkdir(parents=True, exist_ok=True)
        text = (DOCS / "course" / f"{name.lower()}.md").read_text(encoding="utf-8")
        content = notebook(text, _examples.Page(own), deck)
        file = folder / f"{name.lower()}.ipynb"
        file.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        print(f"{file}: {len(content['cells'])} cells")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
