"""The corpus that every Python brings along: the language reference and the standard library's docstrings."""

import ast
import importlib.util
import logging
import sysconfig
import warnings
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from orrery.errors import DataError

logger = logging.getLogger(__name__)

LEFT_OUT = frozenset(
    ["test", "tests", "idlelib", "lib2to3", "site-packages", "dist-packages", "pydoc_data", "__pycache__"]
)
Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def collect() -> Iterator[tuple[str, str]]:
    """Yield (name, text): the topics of the language reference, then the modules with docstrings, in order.

    The text depends on the Python version: store the corpus fingerprint with every result. Raises `DataError`
    where neither topics nor sources are installed.
    """
    empty = True
    for name, text in chain(_topics(), _modules(Path(sysconfig.get_path("stdlib")))):
        empty = False
        yield name, text
    if empty:
        raise DataError(
            "this Python brings neither its topics nor the sources of its library",
            "install the full standard library, or name a text file or a folder",
        )


def _topics() -> Iterator[tuple[str, str]]:
    if importlib.util.find_spec("pydoc_data") is None:
        logger.warning("this Python has no pydoc_data: the corpus is the docstrings alone")
        return
    from pydoc_data.topics import topics

    yield from ((f"topic:{name}", topics[name]) for name in sorted(topics))


def _modules(library: Path) -> Iterator[tuple[str, str]]:
    for name, source in modules(library):
        text = module_docstrings(name, source)
        if text:
            yield f"module:{name}", text


def modules(library: Path) -> Iterator[tuple[str, bytes]]:
    """Yield (name, source) of every module below a folder, in order, without `LEFT_OUT`."""
    for file in sorted(library.rglob("*.py")):
        parts = file.relative_to(library).with_suffix("").parts
        if LEFT_OUT.isdisjoint(parts):
            yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), file.read_bytes()


def module_docstrings(name: str, source: bytes) -> str:
    """Return every docstring of a module under its qualified name, in order; empty where there is none."""
    return "\n\n".join(f"{title}\n\n{text}\n" for title, text in docstrings(name, source))


def docstrings(name: str, source: bytes) -> list[tuple[str, str]]:
    """Return (qualified name, docstring) of everything in a module that has one, in order."""
    if b'"""' not in source and b"'''" not in source:  # most of the time goes into parsing
        return []
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return []
    return list(_sections(tree, name))


def _sections(node: Documented, title: str) -> Iterator[tuple[str, str]]:
    text = ast.get_docstring(node)
    if text:
        yield title, text
    for child in node.body:
        if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _sections(child, f"{title}.{child.name}")
