"""The pages of the documentation, and the modules that build them, for tests."""

import importlib.util
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
MADE = ("_build", "families")
"""Folders that the build writes."""

_BLOCK = re.compile(r"^```(?P<kind>\S*)[^\n]*\n(?P<body>.*?)^```", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\((?!https?:)(?P<target>[^)#\s]+)")


def module(name: str) -> ModuleType:
    """Import a module of ``docs``, such as ``_examples``."""
    if str(DOCS) not in sys.path:
        sys.path.append(str(DOCS))  # as conf.py does: they import each other
    found_spec = importlib.util.spec_from_file_location(f"orrery_docs{name}", DOCS / f"{name}.py")
    assert found_spec is not None
    assert found_spec.loader is not None
    loaded = importlib.util.module_from_spec(found_spec)
    found_spec.loader.exec_module(loaded)
    return loaded


def pages() -> list[Path]:
    """Return every page that is written by hand, and what else of Markdown the repository shows."""
    written = [path for path in DOCS.rglob("*.md") if path.relative_to(DOCS).parts[0] not in MADE]
    return sorted([*written, ROOT / "README.md", ROOT / "CONTRIBUTING.md"])


def text_of(page: str) -> str:
    """Return the text of a page by its name, ``tutorial``."""
    return (DOCS / f"{page}.md").read_text(encoding="utf-8")


def links(text: str) -> list[str]:
    """Return the targets of a page's links inside the repository."""
    return [match["target"] for match in _LINK.finditer(prose(text))]


def prose(text: str) -> str:
    """Return a page without its blocks of code; glossaries stay, for their terms are text."""
    return _BLOCK.sub(lambda m: m["body"] if m["kind"] == "{glossary}" else "", text)


def commands(text: str) -> Iterator[str]:
    """Yield the lines of a page's blocks that call the program."""
    for match in _BLOCK.finditer(text):
        if match["kind"] in ("", "bash", "{command}"):
            lines = match["body"].replace("\\\n", " ").splitlines()
            yield from (line.strip() for line in lines if line.strip().startswith("orrery "))
